import { bytes, text, whole } from "../check.js";
import { Box, type Copies, type Files } from "../box.js";
import { ClosedError } from "../own.js";
import { UnsupportedError } from "../contract.js";
import type { BoxInfo, BoxMetrics, ExecInfo } from "../contract.js";
import type { Execution } from "../execution.js";
import type { BoxChanges, ExecOptions } from "../options.js";
import { path } from "./client.js";
import { RemoteExecution } from "./execution.js";
import type { RemoteRuntime } from "./runtime.js";

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

  readonly files: Files = {
    readFile: async (file) => {
      const reply = await this.#client.send(`${this.#path}/files`, { query: { path: text("path", file) }, again: true });
      return new Uint8Array(await reply.arrayBuffer().catch((cause) => { throw this.#client.lost(cause); }));
    },
    writeFile: async (file, data, { mode = 0o644 } = {}) => {
      const query = { path: text("path", file), mode: whole("mode", mode, 0, 0o7777).toString(8) };
      await this.#client.call(`${this.#path}/files`, { method: "PUT", query, body: bytes("data", data), headers: { "Content-Type": "application/octet-stream" }, again: true });
    },
    copyIn: async (...args) => this.#copies().copyIn(...args),
    copyOut: async (...args) => this.#copies().copyOut(...args),
  };

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

  async remove({ force = true }: { force?: boolean } = {}): Promise<void> {
    if (this.#closed) throw new ClosedError("box");
    await this.runtime.remove(this.id, { force });
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
    if (stdin !== undefined) {
      await execution.stdin.write(stdin);
      if (!options.stdin_open) await execution.stdin.close();
    }
    return execution;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.owned) await this.runtime.discard(this.id);
  }
}
