/** What is asked for again and again while a page shows it. The server tells of no changes by itself. */
import { useEffect, useState } from "preact/hooks";
import { away, ended, failureOf, repeated } from "./api/client.js";
import type { Failure } from "./api/client.js";

/** Polled is the last answer and what went wrong since. */
export interface Polled<T> {
  value: T | undefined;
  failure: Failure | null;
  again: () => void;
}

interface State<T> {
  key: string;
  value: T | undefined;
  failure: Failure | null;
}

/**
 * usePoll asks, and asks again ms after each answer, while the page is visible and
 * the session lives. A change of key asks anew. With ms 0 it asks once.
 */
export function usePoll<T>(ask: (signal: AbortSignal) => Promise<T>, ms: number, key: string): Polled<T> {
  const [state, set] = useState<State<T>>({ key, value: undefined, failure: null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const loop = async () => {
      do {
        if (!document.hidden && !ended.value) await once(ask, abort.signal, key, set);
        repeated.add(abort.signal);
        await pause(ms, abort.signal);
      } while (!abort.signal.aborted && ms > 0);
    };
    void loop();
    return () => abort.abort();
  }, [key, ms, turn, ms === 0 && ended.value, ms === 0 && away.value]);
  const current = state.key === key;
  return { value: current ? state.value : undefined, failure: current ? state.failure : null, again: () => setTurn((n) => n + 1) };
}

async function once<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
  key: string,
  set: (next: (old: State<T>) => State<T>) => void,
): Promise<void> {
  try {
    const value = await ask(signal);
    if (!signal.aborted) set(() => ({ key, value, failure: null }));
  } catch (thrown) {
    const failure = failureOf(thrown); // the last answer stays: it may be all that there is for now
    if (!signal.aborted) set((old) => ({ key, value: old.key === key ? old.value : undefined, failure }));
  }
}

/** pause waits for a time, or until the page is left or seen again. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    document.addEventListener("visibilitychange", done);
    signal.addEventListener("abort", done);
  });
}
