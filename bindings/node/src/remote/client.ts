import { ConfigError, NetworkError, NotFoundError, UnavailableError, classes, kinds } from "../contract.js";
import type { Details, SandboxError } from "../failure.js";
import type { RemoteOptions } from "../options.js";

/** A request that may be sent again is sent so often, after pauses of so many milliseconds. */
const tries = 3;
const afterLost = 100;
const maxRetryAfter = 60;

type Query = Record<string, string | number | boolean | undefined>;

/** What a request has beside its path. */
export interface Request {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  query?: Query;
  headers?: Record<string, string>;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is in place of json. */
  body?: Uint8Array | Blob;
  /** Whether it is safe to send it twice. */
  again?: boolean;
  abort?: AbortSignal;
}

/** The class of WebSockets. Node.js has none before version 22. */
export type Sockets = new (url: string, protocols: string[]) => WebSocket;

/** A server, as requests reach it. */
export class Client {
  readonly url: string;
  /** The path of its boxes. */
  readonly boxes: string;
  readonly #key: string;

  constructor(options: RemoteOptions, readonly sockets: () => Promise<Sockets>) {
    this.url = address(options.url);
    this.#key = options.apiKey ?? "";
    if (!/^[\x21-\x7e]*$/.test(this.#key)) throw new ConfigError("the API key has characters that no key has");
    const prefix = (options.pathPrefix ?? "").replace(/^\/+|\/+$/g, "");
    this.boxes = path("v1", ...prefix.split("/").filter(Boolean), "boxes");
  }

  /** call sends a request and returns the JSON of its reply. */
  async call<T>(where: string, request: Request = {}): Promise<T> {
    return this.#repeat(request, async () => {
      const reply = await this.#once(where, request);
      const text = await reply.text().catch((cause) => { throw this.lost(cause); });
      try {
        return JSON.parse(text) as T;
      } catch (cause) {
        throw new NetworkError(`${this.url} sent an answer that is not the expected JSON`, { cause });
      }
    });
  }

  /** send sends a request and returns its reply, whose body the caller reads or cancels. */
  async send(where: string, request: Request = {}): Promise<Response> {
    return this.#repeat(request, () => this.#once(where, request));
  }

  /** all lists everything, page by page. */
  async all<T>(where: string, member: string, query: Query = {}): Promise<T[]> {
    const found: T[] = [];
    for (let token: string | null | undefined; token !== null;) {
      const page: Record<string, unknown> = await this.call(where, { query: { ...query, page_size: 1000, page_token: token }, again: true });
      found.push(...page[member] as T[]);
      token = (page["next_page_token"] ?? null) as string | null;
    }
    return found;
  }

  /** socket begins to open a WebSocket. */
  async socket(where: string, query: Query = {}): Promise<WebSocket> {
    const url = "ws" + this.#address(where, query).slice("http".length);
    const socket = new (await this.sockets())(url, ["sandbox.v1", ...(this.#key ? [`bearer.${this.#key}`] : [])]);
    socket.binaryType = "arraybuffer";
    return socket;
  }

  lost(cause: unknown): SandboxError {
    const why = cause instanceof Error ? (cause.cause instanceof Error ? cause.cause : cause).message : String(cause);
    return new UnavailableError(`can't reach ${this.url}, or lost the connection: ${why}`, { cause });
  }

  #address(where: string, query: Query = {}): string {
    const given = Object.entries(query).filter(([, value]) => value !== undefined).map(([name, value]) => [name, String(value)]);
    return this.url + where + (given.length ? `?${new URLSearchParams(given)}` : "");
  }

  async #repeat<T>(request: Request, attempt: () => Promise<T>): Promise<T> {
    let begun = false; // an attempt may have done what was asked for
    for (let n = 1; ; n++) {
      try {
        return await attempt();
      } catch (failure) {
        if (begun && request.method === "DELETE" && failure instanceof NotFoundError) return {} as T; // it has
        begun ||= (failure as SandboxError).kind !== "rate_limited";
        const wait = failure instanceof UnavailableError && failure.kind === undefined ? afterLost : 1000 * ((failure as SandboxError).retry_after ?? NaN);
        if (!request.again || request.abort?.aborted || n === tries || !(wait <= 1000 * maxRetryAfter)) throw failure;
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }
  }

  async #once(where: string, request: Request): Promise<Response> {
    const headers: Record<string, string> = { ...request.headers };
    if (this.#key) headers["Authorization"] = `Bearer ${this.#key}`;
    if (request.json !== undefined) headers["Content-Type"] = "application/json";
    const init: RequestInit = { method: request.method ?? "GET", headers, redirect: "error", credentials: "omit", cache: "no-store" };
    if (request.abort) init.signal = request.abort;
    if (request.json !== undefined) init.body = JSON.stringify(request.json);
    else if (request.body !== undefined) init.body = request.body as BodyInit;
    const reply = await fetch(this.#address(where, request.query), init).catch((cause) => { throw this.lost(cause); });
    if (reply.ok) return reply;
    throw failureOf(await reply.text().catch(() => ""), `${this.url} answered ${reply.status}`, reply);
  }
}

/** failureOf returns the failure that the document of an error describes. */
export function failureOf(document: string, answer: string, reply?: Response): SandboxError {
  const details: Details = { request_id: reply?.headers.get("X-Request-Id") ?? undefined };
  const seconds = reply?.headers.get("Retry-After");
  if (seconds && /^\d+$/.test(seconds)) details.retry_after = Number(seconds);
  try {
    const { code, message, fields } = (JSON.parse(document) as { error: { code: string; message: string; fields?: Details["fields"] } }).error;
    if (typeof message === "string") return failure(code, message, { ...details, fields });
  } catch { // it is described below
  }
  const byStatus: Record<number, string> = { 401: "unauthenticated", 403: "permission_denied", 404: "not_found", 413: "too_large", 429: "rate_limited", 503: "unavailable", 504: "timeout" };
  return failure(byStatus[reply?.status ?? 0] ?? "upstream_error", `${answer}, which is not an answer of a sandbox service: check the address (a hosted service's ends in /api)`, details);
}

/** failure returns a failure of the class that a code of a reply belongs to. */
export function failure(kind: string, message: string, details: Details = {}): SandboxError {
  const number = Object.hasOwn(kinds, kind) ? kinds[kind as keyof typeof kinds] : 1;
  return new classes[number as keyof typeof classes](message, { ...details, kind });
}

/** path joins segments to a path, and escapes them. */
export function path(...segments: string[]): string {
  return "/" + segments.map(encodeURIComponent).join("/");
}

function address(given: string | URL): string {
  const want = "want http://HOST:PORT, https://HOST/api or, on Node.js, unix:///PATH";
  let url: URL;
  try {
    url = new URL(given);
  } catch (cause) {
    throw new ConfigError(`the URL can't be read: ${want}`, { cause });
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") throw new ConfigError(`URL ${url.protocol}//...: ${want}`);
  if (url.username || url.password || url.search || url.hash) throw new ConfigError(`the URL of ${url.host} must have only a host and a path`);
  return url.href.replace(/\/+$/, "");
}
