import { ClosedError } from "../own.js";
import { CanceledError, EngineError, ExecutionError, InvalidStateError, TimeoutError } from "../contract.js";
import type { ExecInfo } from "../contract.js";
import { whole } from "../check.js";
import { Execution, grace, type Exit, type Output } from "../execution.js";
import { nameOf } from "../signals.js";
import { path, type Client } from "./client.js";
import { Events } from "./events.js";
import { Session } from "./session.js";

/** A command of a server's box. */
export class RemoteExecution extends Execution {
  readonly #path: string;
  #released = false;

  /** Called when the command turns out not to have been started. */
  unstarted = () => {};

  private constructor(readonly client: Client, record: ExecInfo, readonly source: Events | Session, where: string) {
    super(record.id);
    this.#path = where;
  }

  /** open connects to a command that was just started, or ends it: by WebSocket if it takes input, which needs one. */
  static async open(client: Client, record: ExecInfo, takesInput: boolean): Promise<RemoteExecution> {
    const where = at(client, record.box_id, record.id);
    if (!takesInput) return new RemoteExecution(client, record, new Events(client, `${where}/events`), where);
    try {
      return new RemoteExecution(client, record, await Session.open(client, `${where}/attach`), where);
    } catch (failure) {
      await client.call(`${where}:cancel`, { method: "POST", json: { grace_ms: 0 } }).catch(() => {}); // nobody else has it
      throw failure;
    }
  }

  /** join takes over a command. */
  static async join(client: Client, box: string, id: string): Promise<RemoteExecution> {
    const where = at(client, box, id);
    const record = await client.call<ExecInfo>(where, { again: true }); // a WebSocket would not say what is wrong
    return new RemoteExecution(client, record, await Session.open(client, `${where}/attach`, { resume: true }), where);
  }

  async info(): Promise<ExecInfo> {
    return this.client.call(this.#path, { again: true });
  }

  async kill({ grace_ms = grace }: { grace_ms?: number } = {}): Promise<void> {
    const json = { grace_ms: whole("grace_ms", grace_ms, 0, 2 ** 31) };
    await this.client.call(`${this.#path}:cancel`, { method: "POST", json });
  }

  async signal(signal: string | number): Promise<void> {
    await this.client.call(`${this.#path}:signal`, { method: "POST", json: { signal: nameOf(signal) } });
  }

  async resize(cols: number, rows: number): Promise<void> {
    this.#session("a terminal").tell({ type: "resize", cols: whole("cols", cols, 1, 65535), rows: whole("rows", rows, 1, 65535) });
  }

  protected async read(): Promise<Output | null> {
    try {
      return await this.source.read();
    } catch (failure) {
      if (this.#released) throw new CanceledError("the execution was closed");
      throw failure;
    }
  }

  protected async ended(): Promise<Exit> {
    const { exit_code = null, signal = null } = this.source.exit ?? {};
    if (exit_code === null) throw new EngineError("the box's init died while the command ran, so how the command ended is unknown");
    if (exit_code !== 0) await this.#verdict(exit_code);
    return { exit_code: signal === null ? exit_code : -signal, signal };
  }

  /** verdict throws what a command did not end by itself for. */
  async #verdict(exit_code: number): Promise<void> {
    const { status, reason } = this.source instanceof Events ? this.source.exit! : await this.info();
    if (status === "timed_out") throw new TimeoutError("the command's time ran out, and it was ended");
    if (status === "canceled") throw new CanceledError("the command was killed");
    if (reason === "box_stopped") throw new CanceledError("the command's box was stopped or removed");
    if (reason === "not_found" || reason === "not_executable") {
      this.unstarted();
      const { cmd } = await this.info();
      throw new ExecutionError(`can't start ${cmd[0]}: ${reason === "not_found" ? "there is no such command" : "it can't be executed"}`, { exit_code });
    }
  }

  protected async input(data: Uint8Array): Promise<void> {
    this.#session("an open input").write(data);
  }

  protected async endInput(): Promise<void> {
    this.#session("an open input").tell({ type: "eof" });
  }

  protected async release(detach: boolean): Promise<void> {
    this.#released = true;
    if (detach && this.source instanceof Session) await this.source.detach();
    this.source.close();
  }

  #session(what: string): Session {
    if (this.#released) throw new ClosedError("execution");
    if (this.source instanceof Session) return this.source;
    throw new InvalidStateError(`the command was started without ${what}`);
  }
}

function at(client: Client, box: string, id: string): string {
  return client.boxes + path(box, "exec", id);
}
