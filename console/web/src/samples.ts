/** What running boxes use, measured every two seconds as long as somebody looks. */
import { signal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { box, ended } from "./api/client.js";
import type { BoxInfo, BoxMetrics } from "./api/documents.js";

/** Sample is one measurement of a box. Rates are those since the one before. */
export interface Sample {
  at: number;
  cpu: number | null;
  memory: number | null;
  sent: number | null;
  received: number | null;
}

/** How many samples of a box are kept, and how many requests for them are under way at once. */
const [kept, atOnce, period] = [150, 4, 2000];

interface Watched {
  samples: Signal<Sample[]>;
  info: BoxInfo;
  last: { at: number; used: number; sent: number; received: number } | null;
  watchers: number;
}

const boxes = new Map<string, Watched>();
let looping = false;

/** useSamples returns the samples of a box, and has it measured while the caller is shown. */
export function useSamples(info: BoxInfo): Sample[] {
  const watched = boxes.get(info.id) ?? { samples: signal<Sample[]>([]), info, last: null, watchers: 0 };
  if (watched.info.started_at !== info.started_at) watched.last = null;
  watched.info = info;
  boxes.set(info.id, watched);
  useEffect(() => {
    watched.watchers++;
    if (!looping) void loop();
    return () => void watched.watchers--;
  }, [info.id]);
  return watched.samples.value;
}

async function loop(): Promise<void> {
  looping = true;
  for (;;) {
    const due = [...boxes.values()].filter((w) => w.watchers > 0);
    if (!due.length) break;
    const queue = due.filter((w) => w.info.status === "running");
    const work = async () => {
      for (let next = queue.pop(); next; next = queue.pop()) if (!document.hidden && !ended.value) await measure(next);
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    await new Promise((resolve) => setTimeout(resolve, period));
  }
  looping = false;
}

/** measure takes one sample. The server gives the mean since the start; two of them give what was used between. */
async function measure(watched: Watched): Promise<void> {
  try {
    const m = await box<BoxMetrics>(watched.info.id, "/metrics", { background: true });
    const at = Date.now();
    const used = (m.cpu_percent ?? 0) * (at - Date.parse(watched.info.started_at ?? ""));
    const [sent, received] = [m.network_bytes_sent ?? 0, m.network_bytes_received ?? 0];
    const { last } = watched;
    const rate = (now: number, before: number, known: number | null, ms: number) =>
      known === null ? null : Math.max(0, (now - before) / ms);
    if (last) {
      const ms = at - last.at;
      const sample: Sample = {
        at: at / 1000,
        memory: m.memory_bytes,
        cpu: rate(used, last.used, m.cpu_percent, ms),
        sent: rate(sent, last.sent, m.network_bytes_sent, ms / 1000),
        received: rate(received, last.received, m.network_bytes_received, ms / 1000),
      };
      watched.samples.value = [...watched.samples.value.slice(-kept + 1), sample];
    }
    watched.last = { at, used, sent, received };
  } catch {
    watched.last = null; // it was stopped or removed: the list will say so
  }
}
