/** The output of commands, as Server-Sent Events. */
import { ask, boxPath, failureOf, type Failure } from "./client.js";
import type { ExitEvent, Gap, Log } from "./documents.js";

/** Reader is told of what a command printed, and how it ended. */
export interface Reader {
  log(stream: string, bytes: Uint8Array): void;
  gap(): void;
  exit(end: ExitEvent): void;
  /** lost is called with false when the connection broke and is tried again, and with true when it is back. */
  lost(back: boolean): void;
  fail(failure: Failure): void;
}

const encoder = new TextEncoder();

/** bytesOf returns the bytes of an event. */
const bytesOf = ({ data, encoding }: Log): Uint8Array =>
  encoding === "base64" ? Uint8Array.from(atob(data), (c) => c.charCodeAt(0)) : encoder.encode(data);

/** read reads all events of an exec, from the first one on, and returns what ends it. */
export function read(boxId: string, exec: string, to: Reader): () => void {
  const path = boxPath(boxId, `/exec/${exec}/events`);
  const source = new EventSource(path);
  const on = <T>(name: string, act: (document: T) => void) =>
    source.addEventListener(name, (event) => act(JSON.parse((event as MessageEvent<string>).data) as T));
  on<Log>("log", (log) => to.log(log.stream, bytesOf(log)));
  on<Gap>("gap", () => to.gap());
  on<ExitEvent>("exit", (end) => {
    source.close();
    to.exit(end);
  });
  source.onopen = () => to.lost(true);
  source.onerror = () => {
    if (source.readyState !== EventSource.CLOSED) return to.lost(false);
    const abort = new AbortController(); // the browser does not tell why; the server does
    ask(path, { signal: abort.signal }).then(
      () => abort.abort(),
      (thrown) => to.fail(failureOf(thrown)),
    );
  };
  return () => source.close();
}
