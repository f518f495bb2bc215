/** Quantities as people read them. */
const units = ["B", "KiB", "MiB", "GiB", "TiB"];

/** bytes writes a size with three digits. */
export function bytes(n: number): string {
  let unit = 0;
  for (; n >= 1000 && unit < units.length - 1; unit++) n /= 1024;
  return `${unit === 0 || n >= 100 ? Math.round(n) : n.toPrecision(n < 1 ? 2 : 3).replace(/\.0+$/, "")} ${units[unit]}`;
}

/** mebibytes writes a limit of memory. */
export const mebibytes = (n: number): string => bytes(n * 1024 * 1024);

/** span writes a length of time by its two largest units. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** since is how long ago a time was, in milliseconds. */
export const since = (time: string): number => Date.now() - Date.parse(time);

const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** time writes a time of a document in the user's own time zone. */
export const time = (iso: string): string => moment.format(new Date(iso));

/** number writes a count. */
export const number = (n: number | string): string => Number(n).toLocaleString();

/** quote writes a word of a shell's command line. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
