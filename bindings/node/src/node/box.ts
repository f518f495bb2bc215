import { Socket } from "node:net";
import { Box, type Connection } from "../box.js";
import { cloning, series, text, whole } from "../check.js";
import { CodeRun, type CodeOptions, type Contexts } from "../code.js";
import { ClosedError } from "../own.js";
import { NotFoundError } from "../contract.js";
import type { BoxInfo, BoxMetrics, BoxSeries, Change, Changes, ExecInfo, Share, Snapshot } from "../contract.js";
import type { Execution } from "../execution.js";
import type { Files } from "../files.js";
import type { BoxChanges, CloneOptions, ExecOptions, SeriesOptions } from "../options.js";
import { contexts } from "./contexts.js";
import { Held, NativeExecution } from "./execution.js";
import { files } from "./files.js";
import { Polled } from "./polled.js";
import type { NativeRuntime } from "./runtime.js";

/** A box of this host, or of a server that the C library talks to. */
export class NativeBox extends Box {
  /** Handles that no call uses: a handle is for one thread at a time. */
  readonly #handles: bigint[];
  #closed = false;
  readonly files: Files = files(this);
  readonly contexts: Contexts = contexts(this);

  /** `owned` says that this program made the box to be removed. */
  constructor(readonly runtime: NativeRuntime, id: string, handle: bigint, readonly owned: boolean) {
    super(id);
    this.#handles = [handle];
  }

  /** use calls f with a handle that nothing else uses meanwhile. */
  async use<T>(f: (handle: bigint) => Promise<T>): Promise<T> {
    if (this.#closed) throw new ClosedError("box");
    const { library, handle: runtime } = this.runtime;
    const handle = this.#handles.pop() ?? await library.handle("call", "sandbox_get", runtime, this.id);
    try {
      return await f(handle);
    } finally {
      if (this.#closed) library.free("sandbox_box_free", handle);
      else this.#handles.push(handle);
    }
  }

  async info(): Promise<BoxInfo> {
    return this.use((handle) => this.runtime.library.json("call", "sandbox_box_info", handle));
  }

  async metrics(): Promise<BoxMetrics> {
    return this.use((handle) => this.runtime.library.json("call", "sandbox_box_metrics", handle));
  }

  async metricsSeries(options?: SeriesOptions): Promise<BoxSeries> {
    const { from, to, step } = series(options);
    return this.use((handle) => this.runtime.library.json("call", "sandbox_box_metrics_series", handle, from, to, step ?? 0));
  }

  async start(): Promise<void> {
    await this.use((handle) => this.runtime.library.wait("sandbox_start_box", handle));
  }

  async stop(): Promise<void> {
    await this.use((handle) => this.runtime.library.wait("sandbox_stop_box", handle));
  }

  async pause({ reclaim = false }: { reclaim?: boolean } = {}): Promise<void> {
    await this.use((handle) => this.runtime.library.wait("sandbox_pause_box", handle, Number(reclaim)));
  }

  async resume(): Promise<void> {
    await this.use((handle) => this.runtime.library.wait("sandbox_resume_box", handle));
  }

  async update(changes: BoxChanges): Promise<void> {
    await this.use((handle) => this.runtime.library.wait("sandbox_update_box", handle, JSON.stringify(changes)));
  }

  async snapshot(name?: string): Promise<Snapshot> {
    const given = name === undefined ? null : text("name", name);
    return this.use((handle) => this.runtime.library.json("wait", "sandbox_box_snapshot", handle, given));
  }

  async clone(options?: CloneOptions): Promise<Box[]> {
    const document = JSON.stringify(cloning(options));
    const made = await this.use((handle) => this.runtime.library.json<BoxInfo[]>("wait", "sandbox_box_clone", handle, document));
    return Promise.all(made.map(({ id, auto_remove }) => this.runtime.made(id, auto_remove)));
  }

  async rollback(snapshot: string): Promise<void> {
    const given = text("snapshot", snapshot);
    await this.use((handle) => this.runtime.library.wait("sandbox_box_rollback", handle, given));
  }

  async *diff(since?: string): AsyncGenerator<Change, void, void> {
    const from = since === undefined ? null : text("since", since);
    for (let token: string | null = null;;) {
      const page: Changes = await this.use((handle) => this.runtime.library.json<Changes>("wait", "sandbox_box_diff", handle, from, 0, token));
      yield* page.changes;
      if ((token = page.next_page_token) === null) return;
    }
  }

  async remove({ force = true }: { force?: boolean } = {}): Promise<void> {
    if (this.#closed) throw new ClosedError("box");
    await this.runtime.remove(this.id, { force });
  }

  async connect(port: number): Promise<Connection> {
    const number = whole("port", port, 1, 65535);
    return new Socket({ fd: await this.use((handle) => this.runtime.library.opened("wait", "sandbox_box_connect", handle, number)), readable: true, writable: true });
  }

  async share(port: number, { expires_in_seconds = 3600 }: { expires_in_seconds?: number } = {}): Promise<Share> {
    const given = [whole("port", port, 1, 65535), whole("expires_in_seconds", expires_in_seconds, 1, 30 * 24 * 3600)];
    return this.use((handle) => this.runtime.library.json("call", "sandbox_box_share", handle, ...given));
  }

  async execs(): Promise<ExecInfo[]> {
    return this.use((handle) => this.runtime.library.json("call", "sandbox_exec_list", handle));
  }

  async attach(execId: string): Promise<Execution> {
    const id = text("execId", execId); // its input stays with who began it, but a terminal's
    const { tty } = (await this.execs()).find((exec) => exec.id === id) ?? { tty: false };
    const execution = await this.use((handle) => this.runtime.library.handle("call", "sandbox_exec_attach", handle, id));
    return this.#hold(execution, tty, false, () => this.runtime.library.call("sandbox_exec_detach", execution));
  }

  protected async begin([command, ...args]: string[], options: ExecOptions): Promise<Execution> {
    const { stdin, stdin_open = false, tty = false, cols = 0, rows = 0, env, working_dir, user, timeout_ms = 0 } = options;
    const document = {
      command, args_json: JSON.stringify(args), env_json: env ? JSON.stringify(Object.entries(env)) : null,
      workdir: working_dir ?? null, user: user ?? null, timeout_secs: timeout_ms / 1000,
    };
    const takesInput = stdin_open || stdin !== undefined;
    const handle = await this.use((box) => this.runtime.library.handle("call", "sandbox_exec_start", box, document, Number(takesInput), tty ? { cols, rows } : null));
    const execution = await this.#hold(handle, tty, takesInput, () => this.runtime.library.call("sandbox_exec_kill", handle, 0));
    if (stdin !== undefined) void feed(execution, stdin, stdin_open);
    return execution;
  }

  protected async beginCode(code: string, options: CodeOptions): Promise<CodeRun> {
    const document = JSON.stringify({ code, ...options });
    const handle = await this.use((box) => this.runtime.library.handle("queue", "sandbox_code_start", box, document));
    return new CodeRun(await Polled.of(this.runtime, "sandbox_code", handle));
  }

  /** hold takes over the handle of a command; `leave` is called before it is freed if that fails. */
  #hold(handle: bigint, tty: boolean, takesInput: boolean, leave: () => Promise<void>): Promise<NativeExecution> {
    const { library, held } = this.runtime;
    return this.runtime.hold("sandbox_exec_free", handle, () => new NativeExecution(new Held(library, handle, tty, takesInput, held)), leave);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const handle of this.#handles.splice(0)) this.runtime.library.free("sandbox_box_free", handle);
    if (!this.owned || this.runtime.closed) return;
    await this.runtime.remove(this.id, { force: true }).catch((failure) => {
      if (!(failure instanceof NotFoundError)) throw failure;
    });
  }
}

/** feed gives a command its whole input, which it may refuse to read. */
async function feed(execution: Execution, stdin: string | Uint8Array, open: boolean): Promise<void> {
  try {
    await execution.stdin.write(stdin);
    if (!open) await execution.stdin.close();
  } catch { // the command, or its reader, has ended
  }
}
