/** The output of a command, as it comes. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ended, type Failure } from "../api/client.js";
import type { ExitEvent } from "../api/documents.js";
import { read } from "../api/events.js";
import { number } from "../format.js";
import { plain } from "../safe.js";
import { t } from "../texts.js";
import { Problem, SafeText } from "./parts.js";

interface Line {
  stream: string;
  text: string;
  open: boolean;
}

/** How many lines are shown before the others are asked for, and how long output is gathered before it is drawn. */
const [tail, beat] = [1000, 80];

/** Gathered is what has been read so far. */
class Gathered {
  readonly lines: Line[] = [];
  end: ExitEvent | null = null;
  failure: Failure | null = null;
  lost = false;
  readonly #decoders: Record<string, TextDecoder> = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  readonly #last: Record<string, Line | undefined> = {};

  /** Adds output of a stream: the first part goes on with its last line. */
  add(stream: string, bytes: Uint8Array): void {
    const parts = this.#decoders[stream]!.decode(bytes, { stream: true }).split("\n");
    parts.forEach((text, i) => {
      const line = this.#last[stream];
      if (line?.open) line.text += text;
      else if (text || i < parts.length - 1) this.lines.push((this.#last[stream] = { stream, text, open: true }));
      if (i < parts.length - 1) this.#last[stream]!.open = false;
    });
  }
}

/** Output shows what a command prints until it ends. */
export function Output({ box, exec }: { box: string; exec: string }): JSX.Element {
  const [gathered, set] = useState({ of: new Gathered() });
  const [all, showAll] = useState(false);
  const ref = useRef<HTMLPreElement>(null);
  const follow = useRef(true);
  useEffect(() => {
    if (ended.value) return; // what was read stays, until the next session reads it anew
    const of = new Gathered();
    let timer = 0;
    const draw = () =>
      (timer ||= window.setTimeout(() => {
        timer = 0;
        set({ of });
      }, beat));
    const stop = read(box, exec, {
      log: (stream, bytes) => {
        of.add(stream, bytes);
        draw();
      },
      gap: () => {
        of.add("stderr", new TextEncoder().encode(`${t.execs.gap}\n`));
        draw();
      },
      exit: (end) => {
        of.end = end;
        draw();
      },
      lost: (back) => {
        of.lost = !back;
        draw();
      },
      fail: (failure) => {
        of.failure = failure;
        draw();
      },
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [box, exec, ended.value]);
  useEffect(() => {
    const place = ref.current;
    if (place && follow.current) place.scrollTop = place.scrollHeight;
  }, [gathered]);
  const { lines, end, failure, lost } = gathered.of;
  const first = all ? 0 : Math.max(0, lines.length - tail);
  const onScroll = ({ currentTarget: c }: { currentTarget: HTMLElement }) =>
    (follow.current = c.scrollHeight - c.scrollTop - c.clientHeight < 40);
  return (
    <section aria-label={t.execs.output}>
      {failure?.code === "invalid_state" ? <p class="quiet">{t.execs.elsewhere}</p> : <Problem failure={failure} />}
      {lost && !end && (
        <p class="quiet" role="status">
          {t.execs.lost}
        </p>
      )}
      {first > 0 && (
        <button type="button" class="link" onClick={() => showAll(true)}>
          {t.text.lines(number(lines.length))}
        </button>
      )}
      <pre ref={ref} class="output" tabIndex={0} role="log" aria-label={t.execs.output} onScroll={onScroll}>
        {lines.slice(first).map((line, i) => (
          <div key={first + i} class={line.stream}>
            <SafeText text={plain(line.text)} />
          </div>
        ))}
        {end && !lines.length && <span class="quiet">{t.execs.nothing}</span>}
      </pre>
      <p class="quiet" role="status">
        {end ? t.execs.exit(String(end.exit_code ?? t.boxes.unknown), end.reason ?? end.status) : !failure && t.execs.running}
      </p>
    </section>
  );
}
