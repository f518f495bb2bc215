/** The SQL editor for logs, with the schema beside it. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api, failureOf, type Failure } from "../api/client.js";
import type { QueryResult } from "../api/documents.js";
import { Editor } from "../editor.js";
import { query } from "../logs.js";
import { usePoll } from "../poll.js";
import { visible } from "../safe.js";
import { curl, queryLine } from "../snippets.js";
import { t } from "../texts.js";
import { isDark } from "../theme.js";
import { Copy, Empty, Problem, SafeText } from "../ui/parts.js";
import { Cost } from "./logs.js";

/** The statement, kept while other pages are shown. */
let statement = t.logs.initial;

/** How many rows are put into the page. */
const most = 500;

/** Answer is what is known of the statement that was run last. */
interface Answer {
  busy: boolean;
  result: QueryResult | null;
  failure: Failure | null;
}

const none: Answer = { busy: false, result: null, failure: null };

/** useAnswer runs statements. The answer to one may come behind that to the next, so it is dropped once another is run. */
function useAnswer(): Answer & { execute: () => void } {
  const [answer, set] = useState(none);
  const last = useRef(new AbortController());
  const execute = () => {
    last.current.abort();
    const { signal } = (last.current = new AbortController());
    const end = (how: Partial<Answer>) => {
      if (!signal.aborted) set({ ...none, ...how });
    };
    set({ ...none, busy: true });
    query(statement, signal).then(
      (result) => end({ result }),
      (thrown) => end({ failure: failureOf(thrown) }),
    );
  };
  return { ...answer, execute };
}

/** Sql runs statements. */
export function Sql(): JSX.Element {
  const { busy, result, failure, execute } = useAnswer();
  const place = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const schema = usePoll((signal) => api<QueryResult>("/observability/schema", { signal }), 0, "schema");
  const columns = (schema.value?.rows ?? []).map((row) => ({ name: String(row["name"]), type: String(row["type"]) }));
  useEffect(() => {
    editor.current = new Editor(place.current!, statement, { label: t.logs.editor, change: (text) => (statement = text), run: execute });
    return () => editor.current!.close();
  }, []);
  useEffect(() => editor.current?.setColumns(columns.map((c) => c.name)), [schema.value]);
  useEffect(() => editor.current?.setDark(isDark.value), [isDark.value]);
  return (
    <div class="sql">
      <section aria-label={t.logs.editor}>
        <div ref={place} class="editor" />
        <div class="bar-line">
          <button type="button" class="primary" disabled={busy} onClick={execute}>
            {t.logs.execute}
          </button>
          <span class="quiet">{t.logs.executeHint}</span>
          <Copy label={t.logs.curl} text={() => curl("/observability/query", { sql: statement })} />
          <Copy label={t.logs.cli} text={() => queryLine(statement)} />
          {result && <Cost result={result} />}
        </div>
        <Problem failure={failure} />
        {busy && (
          <p class="quiet" aria-busy="true">
            {t.common.loading}
          </p>
        )}
        {result && (result.rows.length ? <Table result={result} /> : <Empty title={t.logs.noRows} todo={t.logs.noRowsTodo} />)}
      </section>
      <aside aria-label={t.logs.schema}>
        <h2>{t.logs.schemaOf}</h2>
        <Problem failure={schema.failure} again={schema.again} />
        <ul>
          {columns.map(({ name, type }) => (
            <li key={name}>
              <button type="button" class="link code" aria-label={t.logs.insert(name)} onClick={() => editor.current?.insert(name)}>
                {visible(name)}
              </button>{" "}
              <span class="quiet">{visible(type)}</span>
            </li>
          ))}
        </ul>
      </aside>
    </div>
  );
}

function Table({ result: { columns, rows } }: { result: QueryResult }): JSX.Element {
  const text = (value: unknown) => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={t.logs.result}>
      <table class="result">
        <thead>
          <tr>
            {columns.map((c, i) => (
              <th key={i} scope="col" title={visible(c.type)}>
                <bdi>{visible(c.name)}</bdi>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, most).map((row, i) => (
            <tr key={i}>
              {columns.map((c, j) => (
                <td key={j}>
                  <SafeText text={text(row[c.name])} limit={500} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > most && <p class="quiet">{t.logs.cut(most)}</p>}
    </div>
  );
}
