/** Queries of logs: what a search looks for, and how its counts are grouped. */
import { api } from "./api/client.js";
import type { LogFilter, QueryResult, Row } from "./api/documents.js";

/** The times that can be chosen, in seconds. */
export const ranges = { "15m": 900, "1h": 3600, "6h": 21600, "24h": 86400, "7d": 604800 } as const;

/** The severities, the worst first. */
export const severities = ["FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"] as const;

/** Asked is a search as the address of the page has it. */
export interface Asked {
  range: string;
  from: string;
  to: string;
  service: string;
  severity: string;
  text: string;
  traceId: string;
}

/** askedOf reads a search from an address. */
export function askedOf(query: URLSearchParams): Asked {
  const get = (name: string) => query.get(name) ?? "";
  return {
    range: get("range") || "1h",
    from: get("from"),
    to: get("to"),
    service: get("service"),
    severity: get("severity"),
    text: get("text"),
    traceId: get("traceId"),
  };
}

/** filterOf returns the filter of a search that begins now. */
export function filterOf({ range, from, to, ...asked }: Asked): LogFilter {
  const now = Date.now();
  const seconds = ranges[range as keyof typeof ranges];
  const filter: LogFilter = seconds ? { from: iso(now - seconds * 1000), to: iso(now) } : { from: iso(from), to: iso(to) };
  for (const [name, value] of Object.entries(asked)) if (value) Object.assign(filter, { [name]: value });
  return filter;
}

const iso = (time: number | string): string => {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? String(time) : date.toISOString();
};

/** search searches logs, the newest first. */
export const search = (filter: LogFilter, signal?: AbortSignal): Promise<QueryResult> =>
  api("/observability/logs/search", { method: "POST", body: filter, ...(signal ? { signal } : {}) });

/** query runs a statement. */
export const query = (sql: string, signal: AbortSignal): Promise<QueryResult> =>
  api("/observability/query", { method: "POST", body: { sql }, signal });

/** Counts are the numbers of logs by time, one list for each severity, as a chart takes them. */
export interface Counts {
  seconds: number;
  times: number[];
  by: Map<string, number[]>;
  total: number;
}

/** count counts the logs of a filter by time and severity. */
export async function count(filter: LogFilter): Promise<Counts> {
  const [from, to] = [Date.parse(filter.from) / 1000, Date.parse(filter.to) / 1000];
  const seconds = [60, 300, 3600].find((s) => (to - from) / s <= 150) ?? 86400;
  const { rows } = await api<QueryResult>("/observability/logs/aggregate", {
    method: "POST",
    body: { ...filter, groupBy: ["severity", "time"], bucketSeconds: seconds, limit: 10000 },
  });
  const first = Math.floor(from / seconds) * seconds;
  const times = Array.from({ length: Math.max(1, Math.ceil((to - first) / seconds)) }, (_, i) => first + i * seconds);
  const counts: Counts = { seconds, times, by: new Map(), total: 0 };
  for (const row of rows) put(counts, row);
  return counts;
}

function put(counts: Counts, row: Row): void {
  const severity = String(row["severity"]).toUpperCase();
  const name = severities.find((s) => s === severity) ?? "";
  const list = counts.by.get(name) ?? counts.times.map(() => 0);
  const at = Math.round((timeOf(String(row["time"])) / 1000 - counts.times[0]!) / counts.seconds);
  if (at in list) list[at]! += Number(row["count"]);
  counts.by.set(name, list);
  counts.total += Number(row["count"]);
}

/** timeOf reads a time of the engine, which is UTC, in milliseconds. */
export const timeOf = (text: string): number => Date.parse(`${text.replace(" ", "T").slice(0, 23)}Z`);

/** severityOf is the severity of a row, by its number where it has one. */
export function severityOf(row: Row): string {
  const number = Number(row["SeverityNumber"] ?? 0);
  if (number > 0) return [...severities].reverse()[Math.min(5, Math.floor((number - 1) / 4))]!;
  return String(row["SeverityText"] ?? "").toUpperCase();
}
