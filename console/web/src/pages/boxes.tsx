/** The list of boxes, as they are now. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { box, pages, session } from "../api/client.js";
import type { BoxInfo } from "../api/documents.js";
import { bytes, mebibytes, since, span } from "../format.js";
import { usePoll } from "../poll.js";
import { to } from "../router.js";
import { visible } from "../safe.js";
import { useSamples } from "../samples.js";
import { t } from "../texts.js";
import { Spark } from "../ui/chart.js";
import { useMedia } from "../ui/media.js";
import { Confirm, Empty, Problem, State, useAct } from "../ui/parts.js";
import { Virtual } from "../ui/virtual.js";
import { CreateBox } from "./create.js";

const states = ["all", "running", "paused", "stopped", "created", "failed"] as const;

/** Boxes lists boxes by a search and a filter, and has what can be done with each. */
export function Boxes(): JSX.Element {
  const { value, failure, again } = usePoll((signal) => pages<BoxInfo>(session.value!.boxes, "boxes", signal), 2000, "boxes");
  const [search, setSearch] = useState("");
  const [state, setState] = useState<(typeof states)[number]>("all");
  const [dialog, show] = useState<"create" | BoxInfo | null>(null);
  const found = useMemo(
    () => (value ?? []).filter((b) => (state === "all" || b.status === state) && matches(b, search)),
    [value, search, state],
  );
  const close = () => {
    show(null);
    again();
  };
  return (
    <>
      <div class="head">
        <h1>{t.boxes.title}</h1>
        <Search value={search} onInput={setSearch} />
        <select aria-label={t.boxes.filter} value={state} onChange={(e) => setState(e.currentTarget.value as typeof state)}>
          {states.map((s) => (
            <option key={s} value={s}>
              {t.boxes.states[s]}
            </option>
          ))}
        </select>
        <button type="button" class="primary" onClick={() => show("create")}>
          {t.boxes.create}
        </button>
      </div>
      <Problem failure={failure} again={again} />
      {value ? (
        <List boxes={value} found={found} again={again} remove={show} />
      ) : (
        !failure && (
          <p class="quiet" aria-busy="true">
            {t.common.loading}
          </p>
        )
      )}
      {dialog === "create" && <CreateBox onClose={close} />}
      {dialog && dialog !== "create" && <RemoveBox box={dialog} onClose={close} />}
    </>
  );
}

/** RemoveBox asks before a box is removed. */
export function RemoveBox({ box: b, onClose }: { box: BoxInfo; onClose: () => void }): JSX.Element {
  const act = () => box(b.id, "?force=true", { method: "DELETE" });
  return (
    <Confirm
      title={t.boxes.removeTitle(visible(b.name ?? b.id))}
      text={t.boxes.removeText}
      button={t.boxes.remove}
      act={act}
      onClose={onClose}
    />
  );
}

function matches(b: BoxInfo, search: string): boolean {
  const text = [b.id, b.name, b.image, b.rootfs_path, ...Object.entries(b.labels).map(([k, v]) => `${k}=${v}`)].join("\n").toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** Search is the field of the search, which / focuses. */
function Search({ value, onInput }: { value: string; onInput: (text: string) => void }): JSX.Element {
  const ref = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "/" || (event.target as Element).closest("input, textarea, select, [contenteditable], dialog")) return;
      event.preventDefault();
      ref.current!.focus();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return (
    <input
      ref={ref}
      type="search"
      aria-label={t.boxes.search}
      placeholder={`${t.boxes.search}  /`}
      value={value}
      onInput={(e) => onInput(e.currentTarget.value)}
    />
  );
}

function List({
  boxes,
  found,
  again,
  remove,
}: {
  boxes: BoxInfo[];
  found: BoxInfo[];
  again: () => void;
  remove: (b: BoxInfo) => void;
}): JSX.Element {
  const narrow = useMedia("(max-width: 64rem)");
  if (!boxes.length) return <Empty title={t.boxes.empty} todo={t.boxes.emptyTodo} command={t.boxes.emptyCommand} />;
  if (!found.length) return <Empty title={t.boxes.noMatch} todo={t.boxes.noMatchTodo} />;
  return (
    <div class="boxes">
      <div role="table" aria-label={t.boxes.title} aria-rowcount={found.length + 1}>
        <div role="rowgroup">
          <div role="row" aria-rowindex={1} class="box-row box-head">
            {Object.entries(t.boxes.columns).map(([id, name]) => (
              <span key={id} role="columnheader" class={`col-${id}`}>
                {name}
              </span>
            ))}
          </div>
        </div>
        <Virtual
          items={found}
          height={narrow ? 100 : 46}
          keyOf={(b) => b.id}
          row={(b, i, style) => <Row box={b} index={i} style={style} again={again} remove={remove} />}
        />
      </div>
      <p class="quiet" role="status">
        {t.boxes.count(found.length, boxes.length)}
      </p>
    </div>
  );
}

function Row({
  box: b,
  index,
  style,
  again,
  remove,
}: {
  box: BoxInfo;
  index: number;
  style: { transform: string; height: string };
  again: () => void;
  remove: (b: BoxInfo) => void;
}): JSX.Element {
  const samples = useSamples(b);
  const last = b.status === "running" ? samples.at(-1) : undefined;
  const cpu = last?.cpu == null ? t.boxes.unknown : t.boxes.usage(last.cpu.toFixed(0));
  return (
    <div role="row" aria-rowindex={index + 2} class="box-row" style={style}>
      <span role="cell" class="col-name">
        <a href={to(["boxes", b.id])}>
          <bdi>{visible(b.name ?? b.id)}</bdi>
        </a>
      </span>
      <span role="cell" class="col-state">
        <State state={b.status} name={t.boxes.states[b.status]} />
      </span>
      <span role="cell" class="col-image">
        <bdi>{visible(b.image ?? b.rootfs_path ?? "")}</bdi>
      </span>
      <span role="cell" class="col-cpus">
        {b.cpus}
      </span>
      <span role="cell" class="col-memory">
        {last?.memory == null ? "" : `${bytes(last.memory)} / `}
        {mebibytes(b.memory_mib)}
      </span>
      <span role="cell" class="col-uptime">
        {b.status === "running" && b.started_at ? span(since(b.started_at)) : t.boxes.unknown}
      </span>
      <span role="cell" class="col-usage">
        {last ? <Spark values={samples.slice(-30).map((s) => s.cpu ?? 0)} label={cpu} /> : t.boxes.unknown}
      </span>
      <span role="cell" class="col-actions">
        <Actions box={b} again={again} remove={remove} />
      </span>
    </div>
  );
}

/** Verb is what can be done to a box with one click. */
type Verb = "start" | "stop" | "pause" | "resume";

/** Actions are the buttons of a box. */
export function Actions({ box: b, again, remove }: { box: BoxInfo; again: () => void; remove: (b: BoxInfo) => void }): JSX.Element {
  const { busy, failure, run } = useAct();
  const [name, runs] = [visible(b.name ?? b.id), b.status === "running"];
  const verbs: Verb[] = runs ? ["pause", "stop"] : b.status === "paused" ? ["resume", "stop"] : ["start"];
  const change = (verb: Verb) => () =>
    void run(async () => {
      await box(b.id, `:${verb}`, { method: "POST" });
      again();
    });
  return (
    <span class="actions">
      {failure && (
        <span class="wrong" role="alert" title={failure.message}>
          {failure.code}
        </span>
      )}
      {runs && (
        <a class="button small" href={to(["boxes", b.id, "terminal"])} aria-label={t.boxes.of(t.boxes.open, name)}>
          {t.boxes.open}
        </a>
      )}
      {verbs.map((verb) => (
        <button key={verb} type="button" class="small" disabled={busy} aria-label={t.boxes.of(t.boxes[verb], name)} onClick={change(verb)}>
          {t.boxes[verb]}
        </button>
      ))}
      <button type="button" class="small danger" aria-label={t.boxes.of(t.boxes.remove, name)} onClick={() => remove(b)}>
        {t.boxes.remove}
      </button>
    </span>
  );
}
