import { constants, openSync } from "node:fs";
import { Socket } from "node:net";
import { isatty } from "node:tty";
import { whole } from "../check.js";
import { ClosedError } from "../own.js";
import { CanceledError, ExecutionError, InvalidStateError } from "../contract.js";
import type { ExecInfo } from "../contract.js";
import { Execution, grace, type Exit, type Output } from "../execution.js";
import { numberOf } from "../signals.js";
import type { Library } from "./library.js";
import { Pipes } from "./pipes.js";
import { Descriptors } from "./descriptors.js";

/** The descriptors of an execution, as the C library numbers them. */
const [STDIN, STDOUT, STDERR, EXIT] = [0, 1, 2, 3];

/** What an execution holds: it is released by its owner, with its runtime, or when it was forgotten. */
export class Held {
  readonly descriptors: Descriptors;
  readonly exit: number;
  /** Whether this is a terminal itself; that of a server is a pipe here. */
  readonly terminal: boolean;
  readonly pipes: Pipes | undefined;
  readonly input: Socket | undefined;
  #released = false;

  constructor(readonly library: Library, readonly handle: bigint, tty: boolean, stdin: boolean, readonly all: Set<{ release(): void }>) {
    this.descriptors = new Descriptors(library);
    try {
      this.exit = library.descriptor("sandbox_exec_fd", handle, EXIT!);
      this.descriptors.add(this.exit);
      const outputs = (tty ? [STDOUT] : [STDOUT, STDERR]).map((stream) => library.descriptor("sandbox_exec_fd", handle, stream!));
      this.terminal = isatty(outputs[0]!);
      if (this.terminal) this.descriptors.add(outputs[0]!);
      else this.pipes = new Pipes(library, handle, outputs, this.descriptors);
      if ((stdin || tty) && !this.terminal) {
        this.input = new Socket({ fd: own(library.descriptor("sandbox_exec_fd", handle, STDIN!)), readable: false, writable: true });
        this.input.on("error", () => {}); // each write tells of its own
      }
    } catch (failure) {
      this.descriptors.close();
      throw failure;
    }
    all.add(this);
  }

  get released(): boolean {
    return this.#released;
  }

  /** release ends the use of all of it. */
  release(): void {
    if (this.leave()) this.library.freeSoon("sandbox_exec_free", this.handle);
  }

  /** leave ends the use of all but the handle; it tells whether that is left to the caller. */
  leave(): boolean {
    if (this.#released) return false;
    this.#released = true;
    this.all.delete(this);
    this.pipes?.close();
    this.descriptors.close();
    this.input?.destroy();
    return true;
  }
}

const forgotten = new FinalizationRegistry<Held>((held) => held.release());

/** A command of a box of this host, or of a server that the C library talks to. */
export class NativeExecution extends Execution {
  #exited = false;
  readonly #buffer = Buffer.alloc(12); // a length, then a stream

  constructor(readonly held: Held) {
    super(held.library.id("sandbox_exec_id", held.handle));
    forgotten.register(this, held, this);
  }

  async info(): Promise<ExecInfo> {
    return this.#library.json("call", "sandbox_exec_info", this.#handle);
  }

  async kill({ grace_ms = grace }: { grace_ms?: number } = {}): Promise<void> {
    await this.#library.call("sandbox_exec_kill", this.#handle, whole("grace_ms", grace_ms, 0, 2 ** 31) / 1000);
  }

  async signal(signal: string | number): Promise<void> {
    await this.#library.call("sandbox_exec_signal", this.#handle, numberOf(signal));
  }

  async resize(cols: number, rows: number): Promise<void> {
    await this.#library.call("sandbox_exec_resize", this.#handle, whole("cols", cols, 1, 65535), whole("rows", rows, 1, 65535));
  }

  protected async read(): Promise<Output | null> {
    const { pipes, descriptors } = this.held;
    for (;;) {
      const output = pipes?.take();
      if (output) return output;
      if (this.#exited && pipes && !pipes.open) return this.#ending();
      if (this.#exited || descriptors.ready.size > 0 && !pipes) return this.#last();
      await descriptors.wait();
      if (this.held.released) throw new CanceledError("the execution was closed");
      this.#exited ||= descriptors.ready.has(this.held.exit);
    }
  }

  /**
   * last reads with a thread: a terminal, whose flags the box shares, and what children that were left in the
   * background hold open, which the library waits for.
   */
  async #last(): Promise<Output | null> {
    const data = Buffer.allocUnsafeSlow(64 << 10);
    this.held.descriptors.ready.clear();
    await this.#library.call("sandbox_exec_read", this.#handle, data, data.length, this.#buffer, this.#buffer.subarray(8));
    const length = Number(this.#buffer.readBigUInt64LE());
    return length === 0 ? null : { stream: this.#buffer.readInt32LE(8) === STDERR ? "stderr" : "stdout", data: data.subarray(0, length) };
  }

  /** ending asks the library what the end of the pipes means: they end too where the connection to a server is lost. */
  #ending(): null {
    this.#library.now("sandbox_exec_read", this.#handle, Buffer.alloc(1), 1, this.#buffer, this.#buffer.subarray(8));
    return null;
  }

  protected async ended(): Promise<Exit> {
    const code = Buffer.alloc(4);
    code.writeInt32LE(-1);
    const { pipes } = this.held;
    try {
      if (this.#exited && pipes && !pipes.open) this.#library.now("sandbox_exec_wait", this.#handle, code); // nothing to wait for
      else await this.#library.call("sandbox_exec_wait", this.#handle, code);
    } catch (failure) {
      if (!(failure instanceof ExecutionError)) throw failure;
      throw new ExecutionError(failure.message, { exit_code: code.readInt32LE() });
    }
    const n = code.readInt32LE();
    return { exit_code: n, signal: n < 0 ? -n : null };
  }

  protected async input(data: Uint8Array): Promise<void> {
    const handle = this.#handle;
    if (this.held.terminal) return this.#library.call("sandbox_exec_write_stdin", handle, data, data.length);
    const { input } = this.held;
    if (!input) throw new InvalidStateError("the command was started without an open input");
    if (input.writableEnded) throw new InvalidStateError("the command's input was closed");
    await new Promise<void>((resolve, reject) => {
      input.write(data, (cause) => cause ? reject(new InvalidStateError("the command does not read its input any more", { cause })) : resolve());
    });
  }

  protected async endInput(): Promise<void> {
    const handle = this.#handle;
    const { input } = this.held;
    if (input && !input.destroyed) await new Promise<void>((resolve) => input.end(() => { input.destroy(); resolve(); }));
    await this.#library.call("sandbox_exec_close_stdin", handle);
  }

  protected async release(detach: boolean): Promise<void> {
    forgotten.unregister(this);
    if (!detach) return this.held.release();
    if (this.held.leave()) await this.#library.call("sandbox_exec_detach", this.held.handle);
  }

  get #library(): Library {
    return this.held.library;
  }

  get #handle(): bigint {
    if (this.held.released) throw new ClosedError("execution");
    return this.held.handle;
  }
}

/** own opens the pipe of an input anew: a Socket closes what it is given, and the box shares the flags of the other. */
function own(fd: number): number {
  return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK);
}
