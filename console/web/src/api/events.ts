/** The output of commands, as Server-Sent Events. */
import { ask, box, boxPath, failureOf, type Failure } from "./client.js";
import type { ExecInfo, ExitEvent, Gap, Log } from "./documents.js";

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

/** run runs a command in a box to its end and returns its output. It throws a Failure. */
export async function run(boxId: string, cmd: string[]): Promise<{ end: ExitEvent; stdout: string; stderr: string }> {
  const exec = await box<ExecInfo>(boxId, "/exec", { method: "POST", body: { cmd, timeout_ms: 20000 } });
  const output: Record<string, Uint8Array[]> = { stdout: [], stderr: [] };
  const text = async (stream: string) => new Blob(output[stream] as BlobPart[]).text();
  const end = await new Promise<ExitEvent>((resolve, reject) => {
    const stop = read(boxId, exec.id, {
      log: (stream, bytes) => output[stream]!.push(bytes),
      gap: () => {},
      exit: resolve,
      lost: (back) => {
        if (!back) {
          stop();
          reject(failureOf("the connection was lost"));
        }
      },
      fail: reject,
    });
  });
  return { end, stdout: await text("stdout"), stderr: await text("stderr") };
}
