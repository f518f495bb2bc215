/** The dialog that creates a box. */
import type { ComponentProps, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api, ask, pages, session } from "../api/client.js";
import type { BoxInfo, Image, ServerInfo } from "../api/documents.js";
import { go } from "../router.js";
import { visible } from "../safe.js";
import { t } from "../texts.js";
import { Dialog, Field, Problem, useAct } from "../ui/parts.js";

interface VolumeRow {
  host_path: string;
  guest_path: string;
  read_only: boolean;
}
interface PortRow {
  host_port: string;
  guest_port: string;
  protocol: "Tcp" | "Udp";
}

const fresh = {
  name: "",
  image: "",
  cpus: "",
  memory_mib: "",
  disk_size_gb: "",
  network: "Isolated",
  env: "",
  volumes: [] as VolumeRow[],
  ports: [] as PortRow[],
  command: "",
  imageCommand: false,
  restart: "no",
  stop: false,
  health: "",
};

/** CreateBox asks for the options of a box, creates it and shows it. What is left out has the server's defaults. */
export function CreateBox({ onClose }: { onClose: () => void }): JSX.Element {
  const [form, setForm] = useState(fresh);
  const [images, setImages] = useState<Image[]>([]);
  const [info, setInfo] = useState<ServerInfo | null>(null);
  const [wrong, setWrong] = useState("");
  const { busy, failure, run } = useAct();
  const attempt = useRef({ document: "", key: "" });
  useEffect(() => {
    void pages<Image>(`${session.value!.base}/images`, "images").then(setImages, () => {}); // suggestions alone
    void api<ServerInfo>("/info").then(setInfo, () => {});
  }, []);
  const put = (change: Partial<typeof fresh>) => setForm((old) => ({ ...old, ...change }));
  const submit = (event: Event) => {
    event.preventDefault();
    const [env, bad] = variables(form.env);
    setWrong(bad && t.create.envWrong(visible(bad)));
    if (bad) return;
    const body = documentOf(form, env);
    // The same request again, after one that got no answer, makes no second box.
    if (attempt.current.document !== JSON.stringify(body)) attempt.current = { document: JSON.stringify(body), key: random() };
    void run(async () => {
      const made = (await (
        await ask(session.value!.boxes, { method: "POST", body, headers: { "Idempotency-Key": attempt.current.key } })
      ).json()) as BoxInfo;
      onClose();
      go(["boxes", made.id]);
    });
  };
  const input =
    (name: "name" | "image" | "cpus" | "memory_mib" | "disk_size_gb", more: ComponentProps<"input"> = {}) =>
    (props: object) => <input {...props} {...more} value={form[name]} onInput={(e) => put({ [name]: e.currentTarget.value })} />;
  const { defaults, limits } = info ?? {};
  return (
    <Dialog title={t.create.title} onClose={onClose} wide>
      <form onSubmit={submit}>
        <div class="grid">
          <Field label={t.create.name} hint={t.create.nameHint} wrong={failure?.of("name")}>
            {input("name", { autocomplete: "off", spellcheck: false })}
          </Field>
          <Field label={t.create.image} hint={t.create.imageHint} wrong={failure?.of("image")}>
            {input("image", { list: "images", placeholder: defaults?.image, autocomplete: "off", spellcheck: false })}
          </Field>
          <Field label={t.create.cpus} wrong={failure?.of("cpus")}>
            {input("cpus", { type: "number", min: 1, max: limits?.max_cpus, placeholder: String(defaults?.cpus ?? "") })}
          </Field>
          <Field label={t.create.memory} wrong={failure?.of("memory_mib")}>
            {input("memory_mib", { type: "number", min: 16, max: limits?.max_memory_mib, placeholder: String(defaults?.memory_mib ?? "") })}
          </Field>
          <Field label={t.create.disk} hint={t.create.diskHint} wrong={failure?.of("disk_size_gb")}>
            {input("disk_size_gb", { type: "number", min: 1, max: limits?.max_disk_size_gb })}
          </Field>
          <Field label={t.create.network} wrong={failure?.of("network")}>
            {(props) => (
              <select {...props} value={form.network} onChange={(e) => put({ network: e.currentTarget.value })}>
                {Object.entries(t.create.networks).map(([id, name]) => (
                  <option key={id} value={id}>
                    {name}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
        <datalist id="images">
          {images.map((i) => (
            <option key={i.name} value={i.name} />
          ))}
        </datalist>
        <Field label={t.create.env} hint={t.create.envHint} wrong={wrong || failure?.of("env")}>
          {(props) => (
            <textarea {...props} rows={3} spellcheck={false} value={form.env} onInput={(e) => put({ env: e.currentTarget.value })} />
          )}
        </Field>
        <Rows
          name={t.create.volumes}
          rows={form.volumes}
          empty={{ host_path: "", guest_path: "", read_only: false }}
          put={(volumes) => put({ volumes })}
          wrong={failure?.of("volumes")}
          fields={(row, change, of) => (
            <>
              <input
                aria-label={of(t.create.volume.host)}
                placeholder={t.create.volume.host}
                value={row.host_path}
                onInput={(e) => change({ host_path: e.currentTarget.value })}
              />
              <input
                aria-label={of(t.create.volume.guest)}
                placeholder={t.create.volume.guest}
                value={row.guest_path}
                onInput={(e) => change({ guest_path: e.currentTarget.value })}
              />
              <label class="check">
                <input type="checkbox" checked={row.read_only} onChange={(e) => change({ read_only: e.currentTarget.checked })} />
                {t.create.volume.readOnly}
              </label>
            </>
          )}
        />
        <Rows
          name={t.create.ports}
          rows={form.ports}
          empty={{ host_port: "0", guest_port: "", protocol: "Tcp" } as PortRow}
          put={(ports) => put({ ports })}
          wrong={failure?.of("ports")}
          fields={(row, change, of) => (
            <>
              <input
                type="number"
                min={0}
                max={65535}
                aria-label={of(t.create.port.host)}
                title={t.create.port.hostHint}
                value={row.host_port}
                onInput={(e) => change({ host_port: e.currentTarget.value })}
              />
              <input
                type="number"
                min={1}
                max={65535}
                required
                aria-label={of(t.create.port.guest)}
                placeholder={t.create.port.guest}
                value={row.guest_port}
                onInput={(e) => change({ guest_port: e.currentTarget.value })}
              />
              <select
                aria-label={of(t.create.port.protocol)}
                value={row.protocol}
                onChange={(e) => change({ protocol: e.currentTarget.value as "Tcp" | "Udp" })}
              >
                <option>Tcp</option>
                <option>Udp</option>
              </select>
            </>
          )}
        />
        <Service form={form} put={put} wrong={(field) => failure?.of(field)} />
        <Problem failure={failure} />
        <footer>
          <button type="button" onClick={onClose}>
            {t.common.cancel}
          </button>
          <button type="submit" class="primary" disabled={busy}>
            {t.create.submit}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** Service asks for the main command and what belongs to it. */
function Service({
  form,
  put,
  wrong,
}: {
  form: typeof fresh;
  put: (change: Partial<typeof fresh>) => void;
  wrong: (field: string) => string | undefined;
}): JSX.Element {
  const s = t.create.service;
  const none = !form.imageCommand && !form.command.trim();
  const line = (name: "command" | "health", disabled: boolean) => (props: object) => (
    <input {...props} class="code" autocomplete="off" spellcheck={false} disabled={disabled} value={form[name]} onInput={(e) => put({ [name]: e.currentTarget.value })} />
  );
  const check = (name: "imageCommand" | "stop", text: string, disabled: boolean) => (
    <label class="check">
      <input type="checkbox" disabled={disabled} checked={form[name]} onChange={(e) => put({ [name]: e.currentTarget.checked })} />
      {text}
    </label>
  );
  return (
    <fieldset>
      <legend>{s.title}</legend>
      <Field label={s.command} hint={s.commandHint} wrong={wrong("command")}>
        {line("command", form.imageCommand)}
      </Field>
      {check("imageCommand", s.image, false)}
      <Field label={s.restart} wrong={wrong("restart")}>
        {(props) => (
          <select {...props} disabled={none} value={form.restart} onChange={(e) => put({ restart: e.currentTarget.value })}>
            {Object.entries(s.restarts).map(([id, name]) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        )}
      </Field>
      {check("stop", s.stop, none)}
      <Field label={s.health} hint={s.healthHint} wrong={wrong("healthcheck") ?? wrong("healthcheck.test")}>
        {line("health", none)}
      </Field>
    </fieldset>
  );
}

/** service returns the members about the main command: none without one. */
function service(form: typeof fresh): object {
  const command = form.imageCommand ? "image" : form.command.trim() && ["/bin/sh", "-c", form.command];
  if (!command) return {};
  const healthcheck = form.health.trim() ? { test: ["CMD-SHELL", form.health] } : null;
  return { command, restart: form.restart, stop_with_command: form.stop, healthcheck };
}

/** Rows is a list of like rows that can be added and removed. */
function Rows<T extends object>({
  name,
  rows,
  empty,
  put,
  wrong,
  fields,
}: {
  name: string;
  rows: T[];
  empty: T;
  put: (rows: T[]) => void;
  wrong: string | undefined;
  fields: (row: T, change: (part: Partial<T>) => void, of: (what: string) => string) => JSX.Element;
}): JSX.Element {
  return (
    <fieldset>
      <legend>{name}</legend>
      {rows.map((row, i) => (
        <div class="form-row" key={i}>
          {fields(
            row,
            (part) => put(rows.map((old, j) => (i === j ? { ...old, ...part } : old))),
            (what) => t.create.row(what, i + 1),
          )}
          <button
            type="button"
            class="icon"
            aria-label={t.create.removeRow(name, i + 1)}
            onClick={() => put(rows.filter((_, j) => i !== j))}
          >
            ✕
          </button>
        </div>
      ))}
      {wrong && <p class="wrong">{wrong}</p>}
      <button type="button" class="small" aria-label={`${t.common.add}: ${name}`} onClick={() => put([...rows, empty])}>
        {t.common.add}
      </button>
    </fieldset>
  );
}

/** variables reads lines of NAME=value; the second result is the first line that is none. */
function variables(text: string): [Record<string, string>, string] {
  const env: Record<string, string> = {};
  for (const line of text.split("\n").filter((l) => l.trim())) {
    const at = line.indexOf("=");
    if (at < 1) return [env, line];
    env[line.slice(0, at)] = line.slice(at + 1);
  }
  return [env, ""];
}

/** claim is in the place of a path of the host before the name of a claim. */
const claim = "claim:";

function documentOf(form: typeof fresh, env: Record<string, string>): object {
  const number = (text: string) => (text === "" ? null : Number(text));
  return {
    name: form.name || null,
    image: form.image || null,
    cpus: number(form.cpus),
    memory_mib: number(form.memory_mib),
    disk_size_gb: number(form.disk_size_gb),
    network: form.network,
    env,
    volumes: form.volumes.map(({ host_path, ...rest }) => (host_path.startsWith(claim) ? { claim: host_path.slice(claim.length), ...rest } : { host_path, ...rest })),
    ...service(form),
    ports: form.ports.map((p) => ({ ...p, host_port: Number(p.host_port), guest_port: Number(p.guest_port) })),
  };
}

/** random returns an Idempotency-Key. */
function random(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
}
