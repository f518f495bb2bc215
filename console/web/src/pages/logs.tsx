/** Logs: search, with counts over time, and live. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { QueryResult, Row } from "../api/documents.js";
import { bytes, number } from "../format.js";
import { askedOf, count, filterOf, ranges, search, severities, severityOf, timeOf, type Asked } from "../logs.js";
import { usePoll } from "../poll.js";
import { go, to } from "../router.js";
import { visible } from "../safe.js";
import { curl, searchLine } from "../snippets.js";
import { t } from "../texts.js";
import { Histogram } from "../ui/histogram.js";
import { lazy } from "../ui/lazy.js";
import { Copy, Empty, Field, Problem, SafeText, Tabs } from "../ui/parts.js";

const Sql = lazy(async () => (await import("./sql.js")).Sql);

/** Logs is the search, or the SQL editor. */
export function Logs({ sql, query }: { sql: boolean; query: URLSearchParams }): JSX.Element {
  const tabs = [
    { id: "search", name: t.logs.search, href: to(["logs"]) },
    { id: "sql", name: t.logs.sql, href: to(["logs", "sql"]) },
  ];
  return (
    <>
      <div class="head">
        <h1>{t.logs.title}</h1>
      </div>
      <Tabs label={t.logs.title} tabs={tabs} current={sql ? "sql" : "search"} />
      {sql ? <Sql /> : <Search key={query.toString()} asked={askedOf(query)} />}
    </>
  );
}

/** Search shows the logs of one search. Its form makes a new address, and so a new search. */
function Search({ asked }: { asked: Asked }): JSX.Element {
  const [limit, setLimit] = useState(100);
  const [live, setLive] = useState(false);
  const [filter, setFilter] = useState(() => filterOf(asked));
  const found = usePoll((signal) => search({ ...filter, limit }, signal), 0, JSON.stringify([filter, limit]));
  const counts = usePoll(() => count(filter), 0, JSON.stringify(filter));
  const rows = useTail(live, asked, found.value);
  const submit = (next: Asked) => {
    if (JSON.stringify(next) === JSON.stringify(asked)) return setFilter(filterOf(asked)); // the same search, now
    go(["logs"], { ...next });
  };
  const narrow = (from: number, until: number) =>
    go(["logs"], {
      ...asked,
      range: "custom",
      from: new Date(from * 1000).toISOString(),
      to: new Date(Math.max(until, from + 1) * 1000).toISOString(),
    });
  return (
    <>
      <Form asked={asked} submit={submit} />
      <Problem failure={found.failure} again={() => submit(asked)} />
      {counts.value && <Histogram counts={counts.value} narrow={narrow} />}
      <div class="bar-line">
        <label class="check">
          <input type="checkbox" checked={live} onChange={(e) => setLive(e.currentTarget.checked)} />
          {t.logs.live}
        </label>
        <Copy label={t.logs.curl} text={() => curl("/observability/logs/search", { ...filter, limit })} />
        <Copy label={t.logs.cli} text={() => searchLine({ ...filter, limit })} />
        {found.value && <Cost result={found.value} />}
      </div>
      {live && (
        <p class="quiet" role="status">
          {t.logs.liveOn}
        </p>
      )}
      {rows.length > 0 && <Rows rows={rows} />}
      {found.value && !rows.length && <Empty title={t.logs.empty} todo={t.logs.emptyTodo} />}
      {!found.value && !found.failure && (
        <p class="quiet" aria-busy="true">
          {t.common.loading}
        </p>
      )}
      {found.value && found.value.rows.length === limit && limit < 10000 && (
        <button type="button" onClick={() => setLimit(Math.min(10000, limit * 4))}>
          {t.logs.more}
        </button>
      )}
    </>
  );
}

/** Cost says what a query has read. */
export function Cost({ result: { rows, statistics: s } }: { result: QueryResult }): JSX.Element {
  return (
    <p class="quiet cost" role="status">
      {t.logs.found(number(rows.length))}. {t.logs.cost(number(s.readRows), bytes(Number(s.readBytes)), s.elapsedMs.toFixed(1))}
    </p>
  );
}

// A live tail looks back a little, because rows come in later than their time says, and
// keeps so many.
const [back, keep] = [60_000, 2000];

/** useTail returns the rows of a search, with newer ones before them as they come while it is live. */
function useTail(live: boolean, asked: Asked, found: QueryResult | undefined): Row[] {
  const [fresh, setFresh] = useState<Row[]>([]);
  const known = useRef(new Set<string>());
  useEffect(() => {
    known.current = new Set(found?.rows.map((row) => JSON.stringify(row)));
    setFresh([]);
  }, [found]);
  const latest = usePoll(
    async (signal) => {
      if (!live) return [];
      const [from, to] = [-back, back].map((ms) => new Date(Date.now() + ms).toISOString()) as [string, string];
      return (await search({ ...filterOf(asked), from, to, limit: 1000 }, signal)).rows;
    },
    live ? 2000 : 0,
    `${live}`,
  );
  useEffect(() => {
    const more = (latest.value ?? []).filter((row) => !known.current.has(JSON.stringify(row)));
    for (const row of more) known.current.add(JSON.stringify(row));
    if (more.length) setFresh((old) => [...more, ...old].slice(0, keep));
  }, [latest.value]);
  return [...fresh, ...(found?.rows ?? [])];
}

function Form({ asked, submit }: { asked: Asked; submit: (asked: Asked) => void }): JSX.Element {
  const [form, setForm] = useState(asked);
  const put = (change: Partial<Asked>) => setForm((old) => ({ ...old, ...change }));
  const text = (name: keyof Asked) => (props: object) => (
    <input
      {...props}
      autocomplete="off"
      spellcheck={false}
      value={form[name]}
      onInput={(e) => put({ [name]: e.currentTarget.value.trim() })}
    />
  );
  const moment = (name: "from" | "to") => (props: object) => (
    <input
      {...props}
      type="datetime-local"
      step="1"
      required
      value={local(form[name])}
      onInput={(e) => put({ [name]: new Date(e.currentTarget.value).toISOString() })}
    />
  );
  const custom = () => put({ range: "custom", from: form.from || filterOf(form).from, to: form.to || filterOf(form).to });
  return (
    <form
      class="filters"
      onSubmit={(e) => {
        e.preventDefault();
        submit(form.range === "custom" ? form : { ...form, from: "", to: "" });
      }}
    >
      <Field label={t.logs.range}>
        {(props) => (
          <select
            {...props}
            value={form.range}
            onChange={(e) => (e.currentTarget.value === "custom" ? custom() : put({ range: e.currentTarget.value }))}
          >
            {[...Object.keys(ranges), "custom"].map((id) => (
              <option key={id} value={id}>
                {t.logs.ranges[id as keyof typeof t.logs.ranges]}
              </option>
            ))}
          </select>
        )}
      </Field>
      {form.range === "custom" && (
        <>
          <Field label={t.logs.from}>{moment("from")}</Field>
          <Field label={t.logs.to}>{moment("to")}</Field>
        </>
      )}
      <Field label={t.logs.service}>{text("service")}</Field>
      <Field label={t.logs.severity}>
        {(props) => (
          <select {...props} value={form.severity} onChange={(e) => put({ severity: e.currentTarget.value })}>
            <option value="">{t.logs.any}</option>
            {severities.map((s) => (
              <option key={s}>{s}</option>
            ))}
          </select>
        )}
      </Field>
      <Field label={t.logs.text}>
        {(props) => (
          <input {...props} type="search" title={t.logs.textHint} value={form.text} onInput={(e) => put({ text: e.currentTarget.value })} />
        )}
      </Field>
      <Field label={t.logs.trace}>{text("traceId")}</Field>
      <button type="submit" class="primary">
        {t.logs.run}
      </button>
    </form>
  );
}

/** local writes a time as a field for times wants it: in the user's time zone. */
function local(iso: string): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return "";
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function Rows({ rows }: { rows: Row[] }): JSX.Element {
  return (
    <div class="logs">
      {rows.map((row, i) => (
        <Entry key={`${String(row["Timestamp"])}-${rows.length - i}`} row={row} />
      ))}
    </div>
  );
}

/** Entry is a row, with all of its columns once it is open. */
function Entry({ row }: { row: Row }): JSX.Element {
  const [open, set] = useState(false);
  const severity = severityOf(row);
  const [stamp, body] = [String(row["Timestamp"]), String(row["Body"] ?? "")];
  return (
    <details class="log" open={open} onToggle={(e) => set(e.currentTarget.open)}>
      <summary>
        <time dateTime={new Date(timeOf(stamp)).toISOString()}>{visible(stamp.slice(0, 23))}</time>
        <span class={`severity severity-${severity.toLowerCase() || "none"}`}>{severity || t.logs.unset}</span>
        <span class="log-service">
          <bdi>{visible(String(row["ServiceName"] ?? ""))}</bdi>
        </span>
        <span class="log-body">
          <bdi>{visible(body.slice(0, 400))}</bdi>
        </span>
      </summary>
      {open && <Attributes row={row} />}
    </details>
  );
}

function Attributes({ row }: { row: Row }): JSX.Element {
  const flat = Object.entries(row).flatMap(([name, value]) =>
    value && typeof value === "object" ? Object.entries(value).map(([k, v]) => [`${name}.${k}`, v]) : [[name, value]],
  ) as [string, unknown][];
  return (
    <dl class="attributes">
      {flat
        .filter(([, value]) => value !== "")
        .map(([name, value]) => (
          <div key={name}>
            <dt>
              <bdi>{visible(name)}</bdi>
            </dt>
            <dd>
              <SafeText text={typeof value === "string" ? value : JSON.stringify(value)} />
            </dd>
          </div>
        ))}
    </dl>
  );
}
