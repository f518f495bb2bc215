/** API keys: list, create, delete. */
import type { JSX } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { api, session } from "../api/client.js";
import type { Key } from "../api/documents.js";
import { time } from "../format.js";
import { usePoll } from "../poll.js";
import { visible } from "../safe.js";
import { snippets } from "../snippets.js";
import { t } from "../texts.js";
import { Confirm, Copy, Dialog, Empty, Field, Problem, useAct } from "../ui/parts.js";

/** Keys lists the keys of the server, masked. */
export function Keys(): JSX.Element {
  const { value, failure, again } = usePoll(async (signal) => (await api<{ keys: Key[] }>("/keys", { signal })).keys, 10000, "keys");
  const [dialog, show] = useState<"create" | { made: Key } | { remove: Key } | null>(null);
  const close = () => {
    show(null);
    again();
  };
  return (
    <>
      <div class="head">
        <h1>{t.keys.title}</h1>
        <span class="space" />
        <button type="button" class="primary" onClick={() => show("create")}>
          {t.keys.create}
        </button>
      </div>
      <Problem failure={failure} again={again} />
      {value?.length === 0 && <Empty title={t.keys.empty} todo={t.keys.emptyTodo} />}
      {value && value.length > 0 && <Table keys={value} remove={(key) => show({ remove: key })} />}
      {dialog === "create" && <Create onClose={close} made={(key) => show({ made: key })} />}
      {dialog && typeof dialog === "object" && "made" in dialog && <Made made={dialog.made} onClose={close} />}
      {dialog && typeof dialog === "object" && "remove" in dialog && (
        <Confirm
          title={t.keys.removeTitle(visible(dialog.remove.name))}
          text={t.keys.removeText}
          button={t.keys.removeButton}
          onClose={close}
          act={() => api(`/keys/${encodeURIComponent(dialog.remove.id)}`, { method: "DELETE" })}
        />
      )}
    </>
  );
}

function Table({ keys, remove }: { keys: Key[]; remove: (key: Key) => void }): JSX.Element {
  const c = t.keys.columns;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={t.keys.title}>
      <table>
        <thead>
          <tr>
            {[c.name, c.key, c.permissions, c.created, c.used, c.expires, c.actions].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <tr key={key.id}>
              <td>
                <bdi>{visible(key.name)}</bdi>
              </td>
              <td>
                <code>{key.key}</code>
              </td>
              <td>
                {key.permissions.map((p) => (
                  <span key={p} class="tag">
                    {p}
                  </span>
                ))}
                {key.environment && <span class="quiet"> {key.environment}</span>}
              </td>
              <td>{time(key.created_at)}</td>
              <td>{key.last_used_at ? time(key.last_used_at) : t.common.never}</td>
              <td>
                {key.expires_at ? (
                  <>
                    {time(key.expires_at)}
                    {Date.parse(key.expires_at) < Date.now() && <span class="tag">{t.keys.expired}</span>}
                  </>
                ) : (
                  t.common.never
                )}
              </td>
              <td>
                <button type="button" class="small danger" aria-label={t.keys.remove(visible(key.name))} onClick={() => remove(key)}>
                  {t.keys.removeButton}
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Create({ onClose, made }: { onClose: () => void; made: (key: Key) => void }): JSX.Element {
  const [form, setForm] = useState({ name: "", expires: "", environment: "", permissions: [] as string[] });
  const [wanting, want] = useState(false);
  const { busy, failure, run } = useAct();
  const f = t.keys.form;
  const put = (change: Partial<typeof form>) => setForm((old) => ({ ...old, ...change }));
  const submit = (event: Event) => {
    event.preventDefault();
    want(!form.permissions.length);
    if (!form.permissions.length) return;
    const body = {
      name: form.name,
      permissions: form.permissions,
      environment: form.environment || null,
      expires_at: form.expires ? new Date(form.expires).toISOString() : null,
    };
    void run(async () => made(await api<Key>("/keys", { method: "POST", body })));
  };
  const toggle = (permission: string, on: boolean) =>
    put({ permissions: on ? [...form.permissions, permission] : form.permissions.filter((p) => p !== permission) });
  const grantable = session.value?.principal.permissions ?? [];
  const wrong = wanting && !form.permissions.length ? f.needed : failure?.of("permissions");
  return (
    <Dialog title={f.title} onClose={onClose}>
      <form onSubmit={submit}>
        <Field label={f.name} wrong={failure?.of("name")}>
          {(props) => (
            <input
              {...props}
              required
              maxLength={128}
              autocomplete="off"
              value={form.name}
              onInput={(e) => put({ name: e.currentTarget.value })}
            />
          )}
        </Field>
        <Field label={f.expires} hint={f.expiresHint} wrong={failure?.of("expires_at")}>
          {(props) => (
            <input {...props} type="datetime-local" value={form.expires} onInput={(e) => put({ expires: e.currentTarget.value })} />
          )}
        </Field>
        <fieldset>
          <legend>{f.permissions}</legend>
          {Object.entries(t.keys.permissions).map(([id, what]) => (
            <label key={id} class="check">
              <input
                type="checkbox"
                disabled={!grantable.includes(id)}
                checked={form.permissions.includes(id)}
                onChange={(e) => toggle(id, e.currentTarget.checked)}
              />
              <code>{id}</code> {what}
            </label>
          ))}
          {wrong && (
            <p class="wrong" role="alert">
              {wrong}
            </p>
          )}
        </fieldset>
        {form.permissions.some((p) => p.startsWith("observability.")) && (
          <Field label={f.environment} hint={f.environmentHint} wrong={failure?.of("environment")}>
            {(props) => (
              <input
                {...props}
                autocomplete="off"
                placeholder={session.value?.principal.environment}
                value={form.environment}
                onInput={(e) => put({ environment: e.currentTarget.value })}
              />
            )}
          </Field>
        )}
        <Problem failure={failure} />
        <footer>
          <button type="button" onClick={onClose}>
            {t.common.cancel}
          </button>
          <button type="submit" class="primary" disabled={busy}>
            {f.submit}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** Made shows the full key, this once. Only its button closes it. */
function Made({ made, onClose }: { made: Key; onClose: () => void }): JSX.Element {
  const ways = snippets(made);
  const [way, choose] = useState(Object.keys(ways)[0]!);
  const id = useId();
  useEffect(() => {
    const keep = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", keep);
    return () => removeEventListener("beforeunload", keep);
  }, []);
  return (
    <Dialog title={t.keys.made(visible(made.name))} wide>
      <p>
        <strong>{t.keys.once}</strong>
      </p>
      <Field label={t.keys.full}>
        {(props) => (
          <span class="command">
            <input {...props} class="code" readOnly value={made.key} onFocus={(e) => e.currentTarget.select()} />
            <Copy text={made.key} />
          </span>
        )}
      </Field>
      <h3 id={id}>{t.keys.use}</h3>
      <div role="group" aria-labelledby={id} class="ways">
        {Object.keys(ways).map((name) => (
          <button key={name} type="button" class="small" aria-pressed={name === way} onClick={() => choose(name)}>
            {name}
          </button>
        ))}
        <Copy text={ways[way]!} />
      </div>
      <pre class="snippet" tabIndex={0} aria-label={way}>
        {ways[way]}
      </pre>
      <footer>
        <button type="button" class="primary" onClick={onClose}>
          {t.keys.done}
        </button>
      </footer>
    </Dialog>
  );
}
