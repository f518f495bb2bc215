/** The commands of a box, and their output. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { box, boxPath, pages } from "../api/client.js";
import type { BoxInfo, ExecInfo } from "../api/documents.js";
import { span, time } from "../format.js";
import { usePoll } from "../poll.js";
import { t } from "../texts.js";
import { Output } from "../ui/output.js";
import { Empty, Field, Problem, SafeText, State, useAct } from "../ui/parts.js";

/** Execs lists the commands of a box, runs new ones, and shows the output of the chosen one. */
export function Execs({ box: b }: { box: BoxInfo }): JSX.Element {
  const { value, failure, again } = usePoll((signal) => pages<ExecInfo>(boxPath(b.id, "/execs"), "execs", signal), 2000, b.id);
  const [chosen, choose] = useState("");
  const shownOf = value?.find((e) => e.id === chosen);
  return (
    <>
      {b.status === "running" && (
        <Run
          box={b}
          started={(exec) => {
            choose(exec.id);
            again();
          }}
        />
      )}
      {chosen && <Output key={chosen} box={b.id} exec={chosen} />}
      {shownOf?.status === "running" && <Cancel box={b.id} exec={chosen} again={again} />}
      <Problem failure={failure?.status === 409 ? null : failure} />
      {value?.length === 0 && <Empty title={t.execs.empty} todo={b.status === "running" ? t.execs.emptyTodo : t.box.notRunningTodo} />}
      {value && value.length > 0 && <Table execs={value} chosen={chosen} choose={choose} />}
    </>
  );
}

function Table({ execs, chosen, choose }: { execs: ExecInfo[]; chosen: string; choose: (id: string) => void }): JSX.Element {
  const c = t.execs.columns;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={t.execs.title}>
      <table>
        <thead>
          <tr>
            {Object.values(c).map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {execs.map((e) => (
            <tr key={e.id} class={e.id === chosen ? "chosen" : ""}>
              <td>
                <button type="button" class="link code" aria-pressed={e.id === chosen} onClick={() => choose(e.id)}>
                  <SafeText text={e.cmd.join(" ")} limit={200} />
                </button>
              </td>
              <td>
                <State state={e.status} name={t.execs.status[e.status]} />
              </td>
              <td>{time(e.created_at)}</td>
              <td>{e.duration_ms === null ? "" : span(e.duration_ms)}</td>
              <td>{e.exit_code}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Run({ box: b, started }: { box: BoxInfo; started: (exec: ExecInfo) => void }): JSX.Element {
  const [command, set] = useState("");
  const { busy, failure, run } = useAct();
  const submit = (event: Event) => {
    event.preventDefault();
    if (command.trim())
      void run(async () => {
        started(await box<ExecInfo>(b.id, "/exec", { method: "POST", body: { cmd: command } }));
        set("");
      });
  };
  return (
    <form class="line-form" onSubmit={submit}>
      <Field label={t.execs.command} hint={t.execs.commandHint}>
        {(props) => (
          <input
            {...props}
            class="code"
            autocomplete="off"
            spellcheck={false}
            value={command}
            onInput={(e) => set(e.currentTarget.value)}
          />
        )}
      </Field>
      <button type="submit" class="primary" disabled={busy}>
        {t.execs.run}
      </button>
      <Problem failure={failure} />
    </form>
  );
}

function Cancel({ box: id, exec, again }: { box: string; exec: string; again: () => void }): JSX.Element {
  const { busy, failure, run } = useAct();
  return (
    <>
      <button
        type="button"
        class="small"
        disabled={busy}
        onClick={() =>
          void run(async () => {
            await box(id, `/exec/${exec}:cancel`, { method: "POST" });
            again();
          })
        }
      >
        {t.execs.cancel}
      </button>
      <Problem failure={failure} />
    </>
  );
}
