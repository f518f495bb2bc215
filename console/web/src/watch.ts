/** What happens in a directory of a box while the page shows it. */
import { useEffect } from "preact/hooks";
import { ask, box, boxPath, ended } from "./api/client.js";
import type { BoxInfo } from "./api/documents.js";
import { pause } from "./poll.js";

/** How long changes are gathered before the directory is read again, and the time before another watch, in ms. */
const [gathered, retry] = [200, 2000];

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

/** follow watches until the signal comes. The end of the daemon ends a watch, and so does that of the box: another follows it. */
async function follow(id: string, dir: string, signal: AbortSignal, changed: () => void): Promise<void> {
  let refused = false;
  const begun = () => {
    refused = false;
    changed();
  };
  for (let wait = 0; !signal.aborted; wait = retry) {
    try {
      if (wait) await pause(wait, signal);
      if (!wait || (await runs(id, signal))) await watch(id, dir, signal, begun, changed);
    } catch {
      if (!signal.aborted && !refused) changed(); // what reads the directory says what is wrong
      refused = true;
    }
  }
}

/** runs says whether there is a box to watch: a watch would start one that is stopped and has auto_start. */
async function runs(id: string, signal: AbortSignal): Promise<boolean> {
  return !ended.value && (await box<BoxInfo>(id, "", { signal, background: true })).status === "running";
}

async function watch(id: string, dir: string, signal: AbortSignal, begun: () => void, changed: () => void): Promise<void> {
  let timer = 0;
  signal.addEventListener("abort", () => clearTimeout(timer));
  const path = boxPath(id, `/files:watch?path=${encodeURIComponent(dir)}`);
  const events = (await ask(path, { signal, background: true })).body!.pipeThrough(new TextDecoderStream()).getReader();
  begun();
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
}
