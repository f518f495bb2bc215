import { cloning, series, text, whole } from "../check.js";
import { Box, type Connection } from "../box.js";
import { CodeRun, type CodeOptions, type Contexts } from "../code.js";
import { ClosedError } from "../own.js";
import { UnsupportedError } from "../contract.js";
import type { BoxInfo, BoxMetrics, BoxSeries, Change, Changes, ExecInfo, Share, Snapshot } from "../contract.js";
import type { Execution } from "../execution.js";
import type { Copies, Files } from "../files.js";
import type { BoxChanges, CloneOptions, ExecOptions, SeriesOptions } from "../options.js";
import { path } from "./client.js";
import { contexts } from "./contexts.js";
import { RemoteExecution } from "./execution.js";
import { RemoteFiles } from "./files.js";
import type { RemoteRuntime } from "./runtime.js";
import { Streamed } from "./streamed.js";

/** A box of a server. */
export class RemoteBox extends Box {
  readonly #path: string;
  #closed = false;

  /** `owned` says that this program made the box to be removed. */
  constructor(readonly runtime: RemoteRuntime, id: string, readonly owned: boolean) {
    super(id);
    this.#path = runtime.client.boxes + path(id);
  }

  get #client() {
    if (this.#closed) throw new ClosedError("box");
    return this.runtime.use();
  }

  readonly files: Files = new RemoteFiles(() => this.#client, () => `${this.#path}/files`, () => this.#copies());

  readonly contexts: Contexts = contexts(() => this.#client, () => this.#path);

  #copies(): Copies {
    if (this.#closed) throw new ClosedError("box");
    if (!this.runtime.host) throw new UnsupportedError("there are no files of a host here: use readFile and writeFile");
    return this.runtime.host.copies(this.id);
  }

  async info(): Promise<BoxInfo> {
    return this.#client.call(this.#path, { again: true });
  }

  async metrics(): Promise<BoxMetrics> {
    return this.#client.call(`${this.#path}/metrics`, { again: true });
  }

  async metricsSeries(options?: SeriesOptions): Promise<BoxSeries> {
    const { from, to, step } = series(options);
    const query = { from: from ?? "1h", ...(to === null ? {} : { to }), ...(step === null ? {} : { step: `${step}s` }) };
    return this.#client.call(`${this.#path}/metrics`, { query, again: true });
  }

  async start(): Promise<void> {
    await this.#client.call(`${this.#path}:start`, { method: "POST" });
  }

  async stop(): Promise<void> {
    await this.#client.call(`${this.#path}:stop`, { method: "POST" });
  }

  async pause({ reclaim = false }: { reclaim?: boolean } = {}): Promise<void> {
    await this.#client.call(`${this.#path}:pause`, { method: "POST", json: { reclaim } });
  }

  async resume(): Promise<void> {
    await this.#client.call(`${this.#path}:resume`, { method: "POST" });
  }

  async update(changes: BoxChanges): Promise<void> {
    await this.#client.call(this.#path, { method: "PATCH", json: changes });
  }

  async snapshot(name?: string): Promise<Snapshot> {
    const json = name === undefined ? {} : { name: text("name", name) };
    return this.#client.call(`${this.#path}:snapshot`, { method: "POST", json });
  }

  async clone(options?: CloneOptions): Promise<Box[]> {
    return this.runtime.clone(this.#path, cloning(options));
  }

  async rollback(snapshot: string): Promise<void> {
    await this.#client.call(`${this.#path}:rollback`, { method: "POST", json: { snapshot: text("snapshot", snapshot) } });
  }

  async *diff(since?: string): AsyncGenerator<Change, void, void> {
    const query = since === undefined ? {} : { from: text("since", since) };
    for (let token: string | null | undefined; token !== null;) {
      const page: Changes = await this.#client.call(`${this.#path}/diff`, { query: { ...query, page_token: token }, again: true });
      yield* page.changes;
      token = page.next_page_token;
    }
  }

  async remove({ force = true }: { force?: boolean } = {}): Promise<void> {
    if (this.#closed) throw new ClosedError("box");
    await this.runtime.remove(this.id, { force });
  }

  async connect(port: number): Promise<Connection> {
    const number = whole("port", port, 1, 65535);
    if (this.#closed) throw new ClosedError("box");
    if (!this.runtime.host) throw new UnsupportedError("there are no sockets here: ask the port over HTTP, at a link of share");
    return this.runtime.host.connect(this.id, number);
  }

  async share(port: number, { expires_in_seconds = 3600 }: { expires_in_seconds?: number } = {}): Promise<Share> {
    const json = { port: whole("port", port, 1, 65535), expires_in_seconds: whole("expires_in_seconds", expires_in_seconds, 1, 30 * 24 * 3600) };
    return this.#client.call(`${this.#path}:share`, { method: "POST", json });
  }

  async execs(): Promise<ExecInfo[]> {
    return this.#client.all(`${this.#path}/execs`, "execs");
  }

  async attach(execId: string): Promise<Execution> {
    return RemoteExecution.join(this.#client, this.id, text("execId", execId));
  }

  protected async begin(cmd: string[], { stdin, ...options }: ExecOptions): Promise<Execution> {
    const client = this.#client;
    const takesInput = Boolean(options.stdin_open || options.tty || stdin !== undefined);
    const json = { ...options, cmd, ...(stdin === undefined ? {} : { stdin_open: true }) };
    const record = await this.runtime.counted(client.call<ExecInfo>(`${this.#path}/exec`, { method: "POST", json }));
    const execution = await RemoteExecution.open(client, record, takesInput);
    execution.unstarted = () => this.runtime.failed();
    if (stdin === undefined) return execution;
    try {
      await execution.stdin.write(stdin);
      if (!options.stdin_open) await execution.stdin.close();
    } catch (failure) {
      await execution.kill({ grace_ms: 0 }).catch(() => {}); // nobody else has it
      await execution.close();
      throw failure;
    }
    return execution;
  }

  protected async beginCode(code: string, options: CodeOptions): Promise<CodeRun> {
    return new CodeRun(await Streamed.open(this.#client, `${this.#path}/code`, { method: "POST", json: { code, ...options } }));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.owned) await this.runtime.discard(this.id);
  }
}
