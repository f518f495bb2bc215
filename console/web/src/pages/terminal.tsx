/** The terminals of a box, as tabs. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { BoxInfo } from "../api/documents.js";
import { open, shells, type Shell } from "../terminal.js";
import { t } from "../texts.js";
import { copy, Empty, MustRun } from "../ui/parts.js";

/** Terminals shows the terminals of a box, one at a time. */
export function Terminals({ box: b }: { box: BoxInfo }): JSX.Element {
  const mine = shells.value.filter((shell) => shell.box === b.id);
  const [chosen, choose] = useState<Shell | undefined>(mine.at(-1));
  const current = mine.find((shell) => shell === chosen) ?? mine.at(-1);
  if (!mine.length && b.status !== "running") return <MustRun />;
  const button = (
    <button type="button" class={mine.length ? "small" : "primary"} disabled={b.status !== "running"} onClick={() => choose(open(b.id))}>
      {t.terminal.open}
    </button>
  );
  if (!current)
    return (
      <Empty title={t.terminal.empty} todo={t.terminal.emptyTodo}>
        {button}
      </Empty>
    );
  return (
    <>
      <div class="terminal-tabs">
        <div role="tablist" aria-label={t.terminal.tabs}>
          {mine.map((shell) => (
            <button
              key={shell.number}
              type="button"
              role="tab"
              id={`tab-${shell.number}`}
              aria-controls="terminal"
              aria-selected={shell === current}
              onClick={() => choose(shell)}
            >
              {t.terminal.title(shell.number)}
            </button>
          ))}
        </div>
        <button type="button" class="icon" aria-label={t.terminal.close(t.terminal.title(current.number))} onClick={() => current.close()}>
          ✕
        </button>
        {button}
        <span class="space" />
        <button type="button" class="small" onClick={() => void copy(current.term.getSelection()).then(() => current.term.focus())}>
          {t.copy.label}
        </button>
        {"clipboard" in navigator && (
          <button
            type="button"
            class="small"
            onClick={() =>
              void navigator.clipboard.readText().then(
                (text) => {
                  current.term.paste(text);
                  current.term.focus();
                },
                () => {},
              )
            }
          >
            {t.terminal.paste}
          </button>
        )}
      </div>
      <Screen key={current.number} shell={current} />
      <p class="quiet">{t.terminal.hint}</p>
    </>
  );
}

function Screen({ shell }: { shell: Shell }): JSX.Element {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => shell.show(ref.current!), [shell]);
  const state = shell.state.value;
  const notes = {
    connecting: t.terminal.connecting,
    open: "",
    lost: t.terminal.lost,
    taken: t.terminal.taken,
    ended: shell.note.value,
    failed: shell.note.value,
  };
  return (
    <div id="terminal" role="tabpanel" aria-labelledby={`tab-${shell.number}`} class="terminal">
      <div ref={ref} class="terminal-screen" />
      {notes[state] && (
        <p class="terminal-note" role="status">
          {notes[state]}
          {state === "taken" && (
            <>
              {" "}
              <button type="button" class="small" onClick={() => void shell.reconnect()}>
                {t.terminal.again}
              </button>
            </>
          )}
        </p>
      )}
    </div>
  );
}
