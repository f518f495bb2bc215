import type { BuildOptions } from "./build.js";
import type { CodeOptions, ContextOptions } from "./code.js";
import { InvalidArgumentError } from "./contract.js";
import type { CloneOptions, Command, CreateOptions, ExecOptions, HealthCheckOptions, SeriesOptions } from "./options.js";

/** The types that members of options have, as `typeof` or a check says them. */
type Kind = "string" | "number" | "boolean" | "strings" | "bytes" | "array" | "object" | "time" | "command";

const createKinds: Record<keyof CreateOptions, Kind> = {
  name: "string", rootfs_path: "string", cpus: "number", memory_mib: "number", disk_size_gb: "number", working_dir: "string",
  env: "strings", volumes: "array", ports: "array", network: "string", auto_remove: "boolean", ttl_seconds: "number", idle_seconds: "number", on_expiry: "string", auto_start: "boolean", seccomp: "string", allow_unenforced_limits: "boolean",
  command: "command", restart: "string", stop_with_command: "boolean", healthcheck: "object",
};
const healthKinds: Record<keyof HealthCheckOptions, Kind> = {
  test: "command", interval_ms: "number", timeout_ms: "number", start_period_ms: "number", start_interval_ms: "number", retries: "number",
};
const cloneKinds: Record<keyof CloneOptions, Kind> = { n: "number", name_prefix: "string", snapshot: "string", options: "object" };
const seriesKinds: Record<keyof SeriesOptions, Kind> = { from: "time", to: "time", step_seconds: "number" };
const execKinds: Record<keyof ExecOptions, Kind> = {
  env: "strings", working_dir: "string", user: "string", timeout_ms: "number", stdin: "bytes",
  stdin_open: "boolean", tty: "boolean", cols: "number", rows: "number",
};
const codeKinds: Record<keyof CodeOptions, Kind> = { language: "string", context: "string", env: "strings", timeout_ms: "number" };
const buildKinds: Record<keyof BuildOptions, Kind> = {
  context: "string", recipe: "string", recipe_path: "string", name: "string", target: "string", args: "strings", no_cache: "boolean",
  no_network: "boolean", timeout_ms: "number", cpus: "number", memory_mib: "number",
};
const contextKinds: Record<keyof ContextOptions, Kind> = { language: "string", working_dir: "string", user: "string", env: "strings" };
const wanted: Record<Kind, string> = {
  string: "text without NUL", number: "a finite number", boolean: "true or false",
  strings: "an object of texts", bytes: "text or a Uint8Array", array: "an array", object: "an object",
  command: "an array of texts, or text", time: "a Date, or text as RFC 3339 or 90m",
};

/** text returns a value that must be text which C can take. */
export function text(what: string, value: unknown): string {
  if (!is("string", value)) throw new InvalidArgumentError(`${what} must be ${wanted.string}, and is ${shown(value)}`);
  return value as string;
}

/** whole returns a value that must be a whole number. */
export function whole(what: string, value: unknown, least: number, most: number): number {
  if (!Number.isInteger(value) || (value as number) < least || (value as number) > most) {
    throw new InvalidArgumentError(`${what} must be a whole number from ${least} to ${most}, and is ${shown(value)}`);
  }
  return value as number;
}

/** bytes returns the bytes of data that a caller gives. */
export function bytes(what: string, data: unknown): Uint8Array {
  if (typeof data === "string") return new TextEncoder().encode(data);
  if (data instanceof Uint8Array) return data;
  throw new InvalidArgumentError(`${what} must be ${wanted.bytes}, and is ${shown(data)}`);
}

/** creation checks the types of a box's options; the values are the library's or the server's to judge. */
export function creation(image: string | null, options: CreateOptions = {}): CreateOptions {
  if (image !== null) text("image", image);
  const checked = members("the box's options", options, createKinds);
  if (checked.healthcheck !== undefined) checked.healthcheck = members("the members of a health check", checked.healthcheck, healthKinds);
  if ((image === null) !== (checked.rootfs_path !== undefined)) throw new InvalidArgumentError("a box is made from an image, or from a rootfs_path with null as image");
  return checked;
}

/** cloning checks the types of what clones are; the values are the library's or the server's to judge. */
export function cloning(options: CloneOptions = {}): CloneOptions {
  const { name: _, rootfs_path: __, ...kinds } = createKinds;
  const checked = members("the options of clones", options, cloneKinds);
  return checked.options === undefined ? checked : { ...checked, options: members("what clones have otherwise", checked.options, kinds) };
}

/** series returns which part of what a box used is wanted, as text and seconds; null is the default. */
export function series(options: SeriesOptions = {}): { from: string | null; to: string | null; step: number | null } {
  const { from = null, to = null, step_seconds } = members("the options of a series", options, seriesKinds);
  const written = (time: Date | string | null) => time instanceof Date ? time.toISOString() : time;
  return { from: written(from), to: written(to), step: step_seconds === undefined ? null : whole("step_seconds", step_seconds, 1, 2 ** 31 - 1) };
}

/** command returns a command's arguments, itself first, and its options. */
export function command(given: Command): { argv: string[]; options: ExecOptions } {
  const [first, second] = given as [unknown, unknown];
  const list = Array.isArray(first);
  const argv = (list ? first : given) as unknown[];
  if (list && given.length > 2) throw new InvalidArgumentError("an array of arguments is followed by options alone");
  if (argv.length === 0) throw new InvalidArgumentError("a command needs at least its own name");
  return {
    argv: argv.map((a, i) => text(`argument ${i} of the command`, a)),
    options: members("the command's options", list ? (second ?? {}) as ExecOptions : {}, execKinds),
  };
}

/** fileOptions checks the options of a call on files. */
export function fileOptions<T extends object>(options: T, kinds: Record<keyof T, Kind>): T {
  return members("the options of a call on files", options, kinds);
}

/** codeOptions checks the options that code runs with. */
export function codeOptions(options: CodeOptions): CodeOptions {
  return members("the options of code", options, codeKinds);
}

/** buildOptions checks the options that an image is built with. */
export function buildOptions(options: BuildOptions): BuildOptions {
  return members("the options of a build", options, buildKinds);
}

/** contextOptions checks the options that a context is made with. */
export function contextOptions(options: ContextOptions): ContextOptions {
  return members("the options of a context", options, contextKinds);
}

/** members refuses options that are unknown or of a wrong type, and leaves out what is undefined. */
function members<T extends object>(what: string, options: T, kinds: Record<keyof T, Kind>): T {
  if (typeof options !== "object" || options === null) throw new InvalidArgumentError(`${what} must be an object, and are ${shown(options)}`);
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  for (const [name, value] of given) {
    const kind = Object.hasOwn(kinds, name) ? kinds[name as keyof T] : undefined;
    if (kind === undefined) throw new InvalidArgumentError(`${what} have no member ${name}`);
    if (!is(kind, value)) throw new InvalidArgumentError(`${name} must be ${wanted[kind]}, and is ${shown(value)}`);
  }
  return Object.fromEntries(given) as T;
}

function is(kind: Kind, value: unknown): boolean {
  switch (kind) {
    case "string": return typeof value === "string" && !value.includes("\0");
    case "number": return Number.isFinite(value);
    case "strings": return typeof value === "object" && value !== null && !Array.isArray(value) && Object.entries(value).flat().every((v) => is("string", v));
    case "bytes": return typeof value === "string" || value instanceof Uint8Array;
    case "array": return Array.isArray(value);
    case "object": return typeof value === "object" && value !== null && !Array.isArray(value);
    case "command": return is("string", value) || Array.isArray(value) && value.every((v) => is("string", v));
    case "time": return is("string", value) || value instanceof Date && !Number.isNaN(value.getTime());
    case "boolean": return typeof value === "boolean";
  }
}

function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 40 ? value.slice(0, 40) + "..." : value);
  return typeof value === "object" && value !== null ? `a value of the class ${value.constructor?.name ?? "Object"}` : String(value);
}
