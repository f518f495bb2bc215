import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type koffi from "koffi";
import { InternalError, UnsupportedError, classes } from "../contract.js";
import { ClosedError, LibraryError } from "../own.js";
import { Gate } from "./gate.js";

type Koffi = typeof koffi;
type Value = string | number | bigint | Uint8Array | object | null;

/** How a function is called: on a thread, on one of those for what may take long or wait for its turn, or at once. */
type Lane = "call" | "wait" | "queue" | "now";

/** The version of this package, and of the library that belongs to it. */
export const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { version: string };

/** What the C header declares, as far as it is used here. */
const types = `
int sandbox_runtime_new(str home, str registries, void *out, void *err)
int sandbox_runtime_new_remote(str url, str key, str prefix, void *out, void *err)
int sandbox_runtime_open(str profile, void *out, void *err)
int sandbox_runtime_shutdown(void *runtime, int timeout, void *err)
int sandbox_runtime_metrics(void *runtime, void *out, void *err)
void sandbox_runtime_free(void *runtime)
int sandbox_create_box(void *runtime, str options, void *out, void *err)
int sandbox_create_named_box(void *runtime, str name, str options, void *out, void *err)
int sandbox_start_box(void *box, void *err)
int sandbox_stop_box(void *box, void *err)
int sandbox_pause_box(void *box, int reclaim, void *err)
int sandbox_resume_box(void *box, void *err)
int sandbox_update_box(void *box, const char *update_json, void *err)
int sandbox_get(void *runtime, str name, void *out, void *err)
int sandbox_remove(void *runtime, str name, int force, void *err)
int sandbox_list_info(void *runtime, void *out, void *err)
int sandbox_box_info(void *box, void *out, void *err)
int sandbox_box_metrics(void *box, void *out, void *err)
int sandbox_box_metrics_series(void *box, str from, str to, int step, void *out, void *err)
int sandbox_box_snapshot(void *box, str name, void *out, void *err)
int sandbox_box_clone(void *box, str what, void *out, void *err)
int sandbox_box_rollback(void *box, str snapshot, void *err)
int sandbox_box_diff(void *box, str from, int page_size, str page_token, void *out, void *err)
int sandbox_snapshots(void *runtime, str box, void *out, void *err)
void *sandbox_box_id(void *box)
void sandbox_box_free(void *box)
int sandbox_exec_start(void *box, SandboxCommand *command, int stdin, SandboxTerminal *terminal, void *out, void *err)
int sandbox_exec_list(void *box, void *out, void *err)
int sandbox_exec_attach(void *box, str id, void *out, void *err)
void *sandbox_exec_id(void *execution)
int sandbox_exec_info(void *execution, void *out, void *err)
int sandbox_exec_read(void *execution, void *buffer, size_t capacity, void *length, void *stream, void *err)
int sandbox_exec_fd(void *execution, int stream, void *out, void *err)
int sandbox_exec_write_stdin(void *execution, void *data, size_t length, void *err)
int sandbox_exec_close_stdin(void *execution, void *err)
int sandbox_exec_wait(void *execution, void *out, void *err)
int sandbox_exec_kill(void *execution, double grace, void *err)
int sandbox_exec_signal(void *execution, int number, void *err)
int sandbox_exec_resize(void *execution, int cols, int rows, void *err)
int sandbox_exec_detach(void *execution, void *err)
void sandbox_exec_free(void *execution)
int sandbox_copy_in(void *box, str host, str path, str user, SandboxProgressCallback *callback, void *data, void *err)
int sandbox_copy_out(void *box, str path, str host, str user, SandboxProgressCallback *callback, void *data, void *err)
int sandbox_file_stat(void *box, str path, str user, void *out, void *err)
int sandbox_file_list(void *box, str path, int depth, int page_size, str page_token, str user, void *out, void *err)
int sandbox_file_make_dir(void *box, str path, int mode, str user, void *out, void *err)
int sandbox_file_move(void *box, str from, str to, str user, void *out, void *err)
int sandbox_file_remove(void *box, str path, int recursive, str user, void *out, void *err)
int sandbox_watch_start(void *box, str path, int recursive, str user, void *out, void *err)
int sandbox_watch_read(void *watch, double timeout, void *out, void *err)
int sandbox_watch_fd(void *watch, void *out, void *err)
void sandbox_watch_free(void *watch)
int sandbox_box_connect(void *box, int port, void *out, void *err)
int sandbox_box_share(void *box, int port, int seconds, void *out, void *err)
int sandbox_code_start(void *box, str code, void *out, void *err)
int sandbox_code_read(void *run, double timeout, void *out, void *err)
int sandbox_code_fd(void *run, void *out, void *err)
void sandbox_code_free(void *run)
int sandbox_context_create(void *box, str options, void *out, void *err)
int sandbox_context_list(void *box, void *out, void *err)
int sandbox_context_interrupt(void *box, str id, void *out, void *err)
int sandbox_context_restart(void *box, str id, void *out, void *err)
int sandbox_context_remove(void *box, str id, void *err)
int sandbox_image_list(void *runtime, void *out, void *err)
int sandbox_image_pull(void *runtime, str reference, SandboxProgressCallback *callback, void *data, void *out, void *err)
int sandbox_image_import(void *runtime, str name, str source, SandboxProgressCallback *callback, void *data, void *out, void *err)
int sandbox_image_export(void *runtime, str reference, str path, str compression, SandboxProgressCallback *callback, void *data, void *err)
int sandbox_image_push(void *runtime, str reference, str as, str compression, SandboxProgressCallback *callback, void *data, void *out, void *err)
int sandbox_build_start(void *runtime, str build, void *out, void *err)
int sandbox_build_read(void *build, double timeout, void *out, void *err)
int sandbox_build_wait(void *build, void *out, void *err)
int sandbox_build_fd(void *build, void *out, void *err)
void sandbox_build_free(void *build)
int sandbox_image_remove(void *runtime, str reference, int force, void *err)
void sandbox_free_string(void *text)
void sandbox_error_free(void *err)`.trim().split("\n");

/** What a SandboxProgress holds. */
export interface CProgress {
  stage: string;
  part: number;
  parts: number;
  done: number;
  total: number;
}

/**
 * glibc's malloc maps blocks of 128 KiB and more one by one, and returns what is freed to the kernel, until a larger
 * block is freed (mallopt(3), M_MMAP_THRESHOLD). A block of this many bytes, freed once, lets it use the memory of
 * output again: in maps of their own, pieces come half as fast.
 */
const recycled = 4 << 20;

/** The C library. Its calls run on libuv's threads, except those that say "now". */
export class Library {
  readonly #functions = new Map<string, ReturnType<ReturnType<Koffi["load"]>["func"]>>();
  /** How many bytes read(2) has put into a buffer; 0 at the end, and when it failed. */
  readonly read: (fd: number, buffer: Uint8Array, length: number) => number;
  /** poll(2) that does not wait. */
  readonly poll: (polls: Uint8Array, count: number) => void;
  readonly #progress;

  private constructor(readonly koffi: Koffi, file: string) {
    const lib = koffi.load(file);
    const found = lib.func("str sandbox_version()")() as string;
    if (found !== version) throw new LibraryError(`${file} has version ${found}, and this package needs ${version}: install the two together`);
    koffi.struct("SandboxCommand", { command: "str", args_json: "str", env_json: "str", workdir: "str", user: "str", timeout_secs: "double" });
    koffi.struct("SandboxTerminal", { cols: "int", rows: "int" });
    this.#progress = koffi.struct("SandboxProgress", { stage: "str", part: "int", parts: "int", done: "longlong", total: "longlong" });
    koffi.proto("void SandboxProgressCallback(SandboxProgress *progress, void *data)");
    for (const type of types) this.#functions.set(/(\w+)\(/.exec(type)![1]!, lib.func(type));
    const libc = koffi.load("libc.so.6");
    const read = libc.func("long read(int fd, void *buffer, size_t length)");
    const poll = libc.func("int poll(void *polls, unsigned long count, int timeout)");
    this.read = (fd, buffer, length) => Math.max(0, Number(read(fd, buffer, length)));
    this.poll = (polls, count) => { poll(polls, count, 0); };
    libc.func("void free(void *block)")(libc.func("void *malloc(size_t size)")(recycled));
  }

  static #loaded: Promise<Library> | undefined;

  /** load loads the library, once. Errors: Unsupported, LibraryError. */
  static load(): Promise<Library> {
    return this.#loaded ??= (async () => {
      if (process.platform !== "linux") throw new UnsupportedError(`boxes are made on Linux, and this is ${process.platform}: use Runtime.remote`);
      const file = place();
      try {
        return new Library((await import("koffi")).default, file);
      } catch (cause) {
        if (cause instanceof LibraryError) throw cause;
        throw new LibraryError(`can't load ${file}: ${(cause as Error).message}: install this package anew, or the library with make install`, { cause });
      }
    })();
  }

  /** call calls a function that can fail, with a place for its error behind the arguments. */
  async call(name: string, ...args: Value[]): Promise<void> {
    return brief.pass(() => this.#call(name, args));
  }

  /** wait is call for what may take long: half of libuv's threads are left to others. */
  async wait(name: string, ...args: Value[]): Promise<void> {
    return slow.pass(() => this.#call(name, args));
  }

  /** queue is call for what waits for its turn, however long: a quarter of the threads, so that all else goes on. */
  async queue(name: string, ...args: Value[]): Promise<void> {
    return queued.pass(() => this.#call(name, args));
  }

  #call(name: string, args: Value[]): Promise<void> {
    const error = Buffer.alloc(16);
    return new Promise((resolve, reject) => {
      this.#functions.get(name)!.async(...args, error, (failure: unknown, code: number) => {
        if (failure || code !== 0) reject(failure ?? this.#failure(error));
        else resolve();
      });
    });
  }

  /** now calls a function that can fail and never waits. */
  now(name: string, ...args: Value[]): void {
    const error = Buffer.alloc(16);
    if (this.#functions.get(name)!(...args, error) !== 0) throw this.#failure(error);
  }

  /** free calls a function that releases something. */
  free(name: string, handle: bigint): void {
    this.#functions.get(name)!(handle);
  }

  /** freeSoon calls one that takes a tenth of a millisecond, which nobody waits for. */
  freeSoon(name: string, handle: bigint): void {
    void this.freed(name, handle);
  }

  /** freed calls one that takes longer where something has to end first, and waits for it. */
  async freed(name: string, handle: bigint): Promise<void> {
    await brief.pass(() => this.#free(name, handle)).catch(() => {}); // the library says nothing of it
  }

  /** freeSlowly calls one that also removes boxes. */
  freeSlowly(name: string, handle: bigint): Promise<void> {
    return slow.pass(() => this.#free(name, handle));
  }

  #free(name: string, handle: bigint): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#functions.get(name)!.async(handle, (failure: unknown) => failure ? reject(failure as Error) : resolve());
    });
  }

  /** handle calls a function that hands a handle out. */
  async handle(lane: Lane, name: string, ...args: Value[]): Promise<bigint> {
    const out = Buffer.alloc(8);
    await this[lane](name, ...args, out);
    return out.readBigUInt64LE();
  }

  /** json calls a function that hands a document out. */
  async json<T>(lane: Lane, name: string, ...args: Value[]): Promise<T> {
    return JSON.parse(this.#take(await this.handle(lane, name, ...args))) as T;
  }

  /** id returns the id of what a handle refers to. Errors: Closed, if the runtime was closed behind the call that made it. */
  id(name: string, handle: bigint): string {
    const text = this.#functions.get(name)!(handle) as bigint | null;
    if (!text) throw new ClosedError("runtime");
    return this.#take(text);
  }

  /** opened calls a function that hands a descriptor out. */
  async opened(lane: Lane, name: string, ...args: Value[]): Promise<number> {
    const out = Buffer.alloc(4);
    await this[lane](name, ...args, out);
    return out.readInt32LE();
  }

  /** descriptor calls a function that gives a descriptor, such as sandbox_exec_fd. */
  descriptor(name: string, ...args: Value[]): number {
    const out = Buffer.alloc(4);
    this.now(name, ...args, out);
    return out.readInt32LE();
  }

  /** told calls f with a callback for progress, which lives as long. */
  async told<T>(progress: ((p: CProgress) => void) | undefined, f: (callback: bigint | null) => Promise<T>): Promise<T> {
    if (!progress) return f(null);
    const callback = this.koffi.register((at: bigint) => progress(this.koffi.decode(at, this.#progress) as CProgress), "SandboxProgressCallback *");
    try {
      return await f(callback);
    } finally {
      this.koffi.unregister(callback);
    }
  }

  #take(text: bigint): string {
    try {
      return this.koffi.decode.string(text);
    } finally {
      this.free("sandbox_free_string", text);
    }
  }

  #failure(error: Buffer): Error {
    const Class = classes[error.readInt32LE() as keyof typeof classes] ?? InternalError;
    const message = this.koffi.decode.string(error.readBigUInt64LE(8));
    this.#functions.get("sandbox_error_free")!(error);
    return new Class(message);
  }
}

/** place returns the file of the library: that of SANDBOX_LIBRARY, the package's own, or the one that the system knows. */
function place(): string {
  if (process.env["SANDBOX_LIBRARY"]) return process.env["SANDBOX_LIBRARY"];
  const own = fileURLToPath(new URL("../../lib/libsandbox.so", import.meta.url));
  return existsSync(own) ? own : "libsandbox.so.0";
}

const threads = Number(process.env["UV_THREADPOOL_SIZE"]) || 4;
/** More calls at once would only wait for a thread, and koffi refuses more than 256. */
const brief = new Gate(2 * threads);
const slow = new Gate(Math.max(1, threads >> 1));
const queued = new Gate(Math.max(1, threads >> 2));
