/** What happens in a directory of a box while the page shows it. */
import { useEffect } from "preact/hooks";
import { ask, boxPath } from "./api/client.js";

/** How long changes are gathered before the directory is read again, in ms. */
const gathered = 200;

/**
 * useWatch calls changed when it begins to watch a directory, and after changes in it. Nothing is watched while the page is
 * hidden: a watch is a use of the box. It calls changed once more when the page is seen again, and where it can't watch.
 */
export function useWatch(id: string, dir: string, runs: boolean, changed: () => void): void {
  useEffect(() => {
    if (!runs) return;
    let abort = new AbortController();
    const turn = () => {
      abort.abort();
      abort = new AbortController();
      if (!document.hidden) void follow(id, dir, abort.signal, changed);
    };
    document.addEventListener("visibilitychange", turn);
    turn();
    return () => {
      document.removeEventListener("visibilitychange", turn);
      abort.abort();
    };
  }, [id, dir, runs]);
}

async function follow(id: string, dir: string, signal: AbortSignal, changed: () => void): Promise<void> {
  let timer = 0;
  signal.addEventListener("abort", () => clearTimeout(timer));
  try {
    const path = boxPath(id, `/files:watch?path=${encodeURIComponent(dir)}`);
    const events = (await ask(path, { signal, background: true })).body!.pipeThrough(new TextDecoderStream()).getReader();
    changed();
    for (;;) {
      const { done, value } = await events.read();
      if (done) return;
      if (value.includes("data:") && !timer) {
        timer = setTimeout(() => {
          timer = 0;
          changed();
        }, gathered);
      }
    }
  } catch {
    if (!signal.aborted) changed(); // what reads the directory says what is wrong
  }
}
