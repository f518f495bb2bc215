/** Requests to the server, and what their failures mean for the whole console. */
import { signal } from "@preact/signals";
import { t } from "../texts.js";
import type { FailureDocument, FieldProblem, Session } from "./documents.js";

/** The session, null while there is none, undefined while the server has not been asked. */
export const session = signal<Session | null | undefined>(undefined);

/** Whether the session of this page has ended, and its forms wait for the next one. */
export const ended = signal(false);

/** Whether the server did not answer the last request. */
export const away = signal(false);

/** Failure is a refusal of the server, or that it can't be reached (status 0). */
export class Failure extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly fields: FieldProblem[] = [],
    readonly id = "",
    readonly prerequisite = "",
  ) {
    super(message);
  }

  /** Returns what is wrong with a member of the document that was sent. */
  of(field: string): string {
    return this.fields
      .filter((problem) => problem.field === field || problem.field.startsWith(`${field}[`) || problem.field.startsWith(`${field}.`))
      .map((problem) => `${problem.field} ${problem.message}`)
      .join("; ");
  }
}

/** failureOf returns anything that was thrown as a Failure. */
export function failureOf(thrown: unknown): Failure {
  return thrown instanceof Failure ? thrown : new Failure(0, "internal", String(thrown));
}

/** The signals of requests that the page repeats by itself. */
export const repeated = new WeakSet<AbortSignal>();

let attended = true; // since the last request that counted
for (const touch of ["pointerdown", "keydown", "wheel"]) addEventListener(touch, () => (attended = true), { passive: true, capture: true });

/** unattended says whether a request tells nothing of somebody being there: then it does not keep the session from being idle. */
function unattended(signal: AbortSignal | undefined): boolean {
  if (signal && repeated.has(signal) && !attended) return true;
  return (attended = false);
}

/** Options of a request. A body that is a Blob is sent as it is, any other as JSON. */
export interface Options {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** nobody has asked for it: it does not keep the session from being idle */
  background?: boolean;
}

/** ask sends a request to a path of the server and returns its answer. It throws a Failure. */
export async function ask(path: string, { method = "GET", body, headers = {}, signal, background }: Options = {}): Promise<Response> {
  const init: RequestInit = {
    method,
    headers: { ...headers },
    signal: signal ?? null,
    credentials: "same-origin",
    cache: "no-store",
    redirect: "error",
  };
  if (background || unattended(signal)) Object.assign(init.headers!, { "X-Background": "1" });
  if (method !== "GET") Object.assign(init.headers!, { "X-CSRF-Token": session.value?.csrf ?? "" });
  if (body instanceof Blob) init.body = body;
  else if (body !== undefined) {
    init.body = JSON.stringify(body);
    Object.assign(init.headers!, { "Content-Type": "application/json" });
  }
  let answer: Response;
  try {
    answer = await fetch(path, init);
  } catch (thrown) {
    if (signal?.aborted) throw thrown;
    away.value = true;
    throw new Failure(0, "away", t.away.message);
  }
  away.value = false;
  if (answer.ok) return answer;
  throw await refusal(answer);
}

async function refusal(answer: Response): Promise<Failure> {
  const said = (await answer.json().catch(() => ({}))) as FailureDocument;
  const { code = "", message = t.failure.status(answer.status), fields = [], ...rest } = said.error ?? said;
  if (answer.status === 401 && session.value) ended.value = true;
  const id = said.error?.request_id ?? said.correlationId ?? "";
  return new Failure(answer.status, code, message, fields, id, "prerequisite" in rest ? (rest.prerequisite ?? "") : "");
}

/** api sends a request to a route of the API, such as /keys, and returns its document. */
export async function api<T>(route: string, options?: Options): Promise<T> {
  return (await ask(`${session.value?.base ?? ""}${route}`, options)).json() as Promise<T>;
}

/** boxPath is the path of a box, or of what is below it. */
export function boxPath(id: string, below = ""): string {
  return `${session.value?.boxes ?? ""}/${encodeURIComponent(id)}${below}`;
}

/** box sends a request to a route of a box and returns its document. */
export async function box<T>(id: string, below = "", options?: Options): Promise<T> {
  return (await ask(boxPath(id, below), options)).json() as Promise<T>;
}

/** pages reads all pages of a list. */
export async function pages<T>(path: string, member: string, signal?: AbortSignal): Promise<T[]> {
  const all: T[] = [];
  for (let token: string | null = ""; token !== null;) {
    const query: string = `?page_size=1000${token && `&page_token=${encodeURIComponent(token)}`}`;
    const page = (await (await ask(path + query, signal ? { signal } : {})).json()) as Record<string, unknown>;
    all.push(...(page[member] as T[]));
    token = page["next_page_token"] as string | null;
  }
  return all;
}

/** may says whether the session has a permission. */
export function may(permission: string): boolean {
  return session.value?.principal.permissions.includes(permission) ?? false;
}
