/** Small parts that all pages share. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { failureOf, type Failure } from "../api/client.js";
import { bytes } from "../format.js";
import { shown, visible } from "../safe.js";
import { t } from "../texts.js";

/** SafeText shows text of boxes and logs: nothing in it is hidden, and what is long is cut until it is asked for. */
export function SafeText({ text, limit = shown }: { text: string; limit?: number }): JSX.Element {
  const [all, show] = useState(false);
  const cut = !all && text.length > limit;
  return (
    <bdi class="safe">
      {visible(cut ? text.slice(0, limit) : text)}
      {cut && (
        <>
          …{" "}
          <button type="button" class="link" onClick={() => show(true)}>
            {t.text.all(bytes(text.length))}
          </button>
        </>
      )}
    </bdi>
  );
}

/** Empty says that there is nothing, and what to do next. */
export function Empty({
  title,
  todo,
  command,
  whole,
  children,
}: {
  title: string;
  todo: string;
  command?: string;
  /** it is all that the page has */
  whole?: boolean;
  children?: ComponentChildren;
}): JSX.Element {
  const Title = whole ? "h1" : "p";
  return (
    <div class="empty">
      <Title class="empty-title">{title}</Title>
      <p>{todo}</p>
      {command && <Command text={command} />}
      {children}
    </div>
  );
}

/** Problem shows a failure as the server gave it. */
export function Problem({ failure, again }: { failure: Failure | null; again?: () => void }): JSX.Element | null {
  if (!failure || failure.code === "away" || failure.code === "unauthenticated") return null; // the page itself shows these
  return (
    <div class="problem" role="alert">
      <p>
        <strong>{failure.code || failure.status}</strong> <SafeText text={failure.message} />
      </p>
      {failure.prerequisite && (
        <p>
          {t.failure.todo}: <SafeText text={failure.prerequisite} />
        </p>
      )}
      {failure.fields.length > 0 && (
        <ul>
          {failure.fields.map((f) => (
            <li key={f.field}>
              <code>{visible(f.field)}</code> <SafeText text={f.message} />
            </li>
          ))}
        </ul>
      )}
      {failure.id && (
        <p class="quiet">
          {t.failure.id} <code>{failure.id}</code>
        </p>
      )}
      {again && (
        <button type="button" onClick={again}>
          {t.failure.retry}
        </button>
      )}
    </div>
  );
}

/** Denied says which permission a page needs. */
export const Denied = ({ permission }: { permission: string }): JSX.Element => (
  <Empty whole title={t.failure.denied(permission)} todo={t.failure.deniedTodo} />
);

/** Copy copies a text to the clipboard. */
export function Copy({ text, label = t.copy.label }: { text: string | (() => string); label?: string }): JSX.Element {
  const [done, set] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => set(false), 1500);
    return () => clearTimeout(timer);
  }, [done]);
  const onClick = () => void copy(typeof text === "string" ? text : text()).then(() => set(true));
  return (
    <button type="button" class="small" onClick={onClick}>
      <span aria-live="polite">{done ? t.copy.done : label}</span>
    </button>
  );
}

/** copy puts a text on the clipboard. Over plain HTTP only the older way is there. */
export async function copy(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** Command is a command line that can be copied. */
export function Command({ text }: { text: string }): JSX.Element {
  return (
    <div class="command">
      <code tabIndex={0}>{text}</code>
      <Copy text={text} />
    </div>
  );
}

/** Field is a labelled input with a hint, and with what is wrong with it. */
export function Field({
  label,
  hint,
  wrong,
  children,
}: {
  label: string;
  hint?: string;
  wrong?: string | undefined;
  children: (props: { id: string; "aria-describedby": string; "aria-invalid"?: true }) => JSX.Element;
}): JSX.Element {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": `${id}-about`, ...(wrong ? { "aria-invalid": true as const } : {}) })}
      <div id={`${id}-about`} class={wrong ? "wrong" : "hint"}>
        {wrong ? <SafeText text={wrong} /> : hint}
      </div>
    </div>
  );
}

/** Dialog is a modal dialog, which Escape and its close button end. */
export function Dialog({
  title,
  onClose,
  children,
  wide,
}: {
  title: string;
  onClose?: () => void;
  children: ComponentChildren;
  wide?: boolean;
}): JSX.Element {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = ref.current!;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  const onCancel = (event: Event) => {
    event.preventDefault();
    onClose?.();
  };
  return (
    <dialog ref={ref} class={wide ? "wide" : ""} aria-labelledby={id} onCancel={onCancel}>
      <header>
        <h2 id={id}>{title}</h2>
        {onClose && (
          <button type="button" class="icon" aria-label={t.common.close} onClick={onClose}>
            ✕
          </button>
        )}
      </header>
      {children}
    </dialog>
  );
}

/** Confirm asks before something that can't be undone. */
export function Confirm({
  title,
  text,
  button,
  act,
  onClose,
}: {
  title: string;
  text: string;
  button: string;
  act: () => Promise<unknown>;
  onClose: () => void;
}): JSX.Element {
  const { busy, failure, run } = useAct();
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{text}</p>
      <Problem failure={failure} />
      <footer>
        <button type="button" onClick={onClose}>
          {t.common.cancel}
        </button>
        <button
          type="button"
          class="danger"
          disabled={busy}
          onClick={() =>
            void run(async () => {
              await act();
              onClose();
            })
          }
        >
          {button}
        </button>
      </footer>
    </Dialog>
  );
}

/** useAct runs what a button does, with its failure. A button that is disabled while busy does it once at a time. */
export function useAct(): { busy: boolean; failure: Failure | null; run: (act: () => Promise<unknown>) => Promise<void> } {
  const [state, set] = useState<{ busy: boolean; failure: Failure | null }>({ busy: false, failure: null });
  const run = async (act: () => Promise<unknown>) => {
    set({ busy: true, failure: null });
    try {
      await act();
      set({ busy: false, failure: null });
    } catch (thrown) {
      set({ busy: false, failure: failureOf(thrown) });
    }
  };
  return { ...state, run };
}

/** Tabs are links to the parts of a page. */
export function Tabs({
  label,
  tabs,
  current,
}: {
  label: string;
  tabs: { id: string; name: string; href: string }[];
  current: string;
}): JSX.Element {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ id, name, href }) => (
        <a key={id} href={href} aria-current={id === current ? "page" : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
}

/** State is the state of a box or a command, by color and word. */
export const State = ({ state, name }: { state: string; name: string }): JSX.Element => <span class={`state state-${state}`}>{name}</span>;

/** MustRun stands in place of what needs a running box. */
export const MustRun = (): JSX.Element => <Empty title={t.box.notRunning} todo={t.box.notRunningTodo} />;
