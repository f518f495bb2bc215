/** The page that the address names. It stands behind the #, so that the server needs to know none of them. */
import { signal } from "@preact/signals";

/** Route is a page: the parts of its path, and its query. */
export interface Route {
  parts: string[];
  query: URLSearchParams;
}

/** The page that is shown. */
export const route = signal<Route>(parse());

addEventListener("hashchange", () => (route.value = parse()));

function parse(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { parts: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** to returns the address of a page. */
export function to(parts: string[], query: Record<string, string | undefined> = {}): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => Boolean(pair[1]));
  return `#/${parts.map(encodeURIComponent).join("/")}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

/** go shows a page. */
export function go(parts: string[], query?: Record<string, string | undefined>): void {
  location.hash = to(parts, query);
}
