import { bytes } from "./check.js";
import { CanceledError, InvalidStateError, ResourceExhaustedError } from "./contract.js";
import type { ExecInfo, Stream } from "./contract.js";

/** A piece of a command's output, as the command wrote it. The bytes are the caller's. */
export interface Output {
  stream: Stream;
  data: Uint8Array;
}

/** How a command ended. */
export interface Exit {
  /** 0 to 255; -N if signal N ended the command. */
  exit_code: number;
  /** N, or null if no signal ended the command. */
  signal: number | null;
}

/** The end of a command, with all that it printed. */
export interface Result extends Exit {
  /** What it printed, with U+FFFD in place of bytes that are not UTF-8. */
  stdout: string;
  stderr: string;
  /** The same as it was printed. */
  stdout_bytes: Uint8Array;
  stderr_bytes: Uint8Array;
}

/** The most bytes of a stream that a {@link Result} holds. */
export const maxResult = 64 << 20;

/** How long a command has between SIGTERM and SIGKILL, in ms, unless `kill` says it. */
export const grace = 2000;

/** The input of a command. */
export interface Input {
  /** Resolves when the command, or the connection to it, has taken the data. */
  write(data: string | Uint8Array): Promise<void>;
  close(): Promise<void>;
}

/**
 * A command in a box. It is read by `for await`, which yields pieces of output as they
 * come, or ended with `wait`, which drops what was not read. A slow reader makes the
 * command wait. Leaving the loop early leaves the command running: `kill` ends it,
 * `close` drops its output, `detach` leaves it to the next `box.attach`.
 */
export abstract class Execution implements AsyncIterable<Output>, AsyncDisposable {
  readonly stdin: Input = {
    write: async (data) => this.input(bytes("input", data)),
    close: async () => this.endInput(),
  };
  #reading = false;
  #closed = false;
  #exit: Promise<Exit> | undefined;

  constructor(readonly id: string) {}

  /** The command as it is now. */
  abstract info(): Promise<ExecInfo>;
  /** Ends the command and all that it started: SIGTERM, and SIGKILL after `grace_ms`, 2000 if left out. */
  abstract kill(options?: { grace_ms?: number }): Promise<void>;
  /** Sends a signal, such as "INT" or 2, to the command's own process. */
  abstract signal(signal: string | number): Promise<void>;
  /** Sets the size of the command's terminal. */
  abstract resize(cols: number, rows: number): Promise<void>;

  /** read returns the next piece, or null when the command has ended and all was read. */
  protected abstract read(): Promise<Output | null>;
  /** ended tells how the command ended, after read returned null. */
  protected abstract ended(): Promise<Exit>;
  protected abstract input(data: Uint8Array): Promise<void>;
  protected abstract endInput(): Promise<void>;
  /** release ends the use of the command, and a read that waits. */
  protected abstract release(detach: boolean): Promise<void>;

  async *[Symbol.asyncIterator](): AsyncGenerator<Output, void, void> {
    for (let piece = await this.#next(); piece !== null; piece = await this.#next()) yield piece;
  }

  /**
   * Waits for the end of the command. Rejects with ExecutionError if it could not be
   * started, TimeoutError if its time ran out, CanceledError if it was killed or its
   * box was stopped.
   */
  wait(): Promise<Exit> {
    return this.#exit ??= this.#drain();
  }

  async #drain(): Promise<Exit> {
    while (await this.#next() !== null);
    return this.ended();
  }

  /** Waits for the end, and returns all output that was not read before. */
  async result(): Promise<Result> {
    const parts = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
    const sizes = { stdout: 0, stderr: 0 };
    for await (const { stream, data } of this) {
      parts[stream].push(data);
      sizes[stream] += data.length;
      if (sizes[stream] > maxResult) {
        await this.kill({ grace_ms: 0 }).catch(() => {}); // it may have ended meanwhile
        throw new ResourceExhaustedError(`the command printed more than ${maxResult >> 20} MiB, and was killed: read it with exec`);
      }
    }
    const exit = await this.wait();
    const [stdout, stderr] = [joined(parts.stdout, sizes.stdout), joined(parts.stderr, sizes.stderr)];
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    return { ...exit, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr), stdout_bytes: stdout, stderr_bytes: stderr };
  }

  /** Leaves the command and its output to the next `box.attach`. */
  async detach(): Promise<void> {
    await this.#leave(true);
  }

  /** Ends the use of the command, which goes on; its output is dropped. A second call does nothing. */
  async close(): Promise<void> {
    await this.#leave(false);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #leave(detach: boolean): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.release(detach);
  }

  async #next(): Promise<Output | null> {
    if (this.#closed) throw new CanceledError("the execution was closed");
    if (this.#reading) throw new InvalidStateError("another call reads this execution or waits for its end: one does at a time");
    this.#reading = true;
    try {
      return await this.read();
    } finally {
      this.#reading = false;
    }
  }
}

function joined(parts: Uint8Array[], size: number): Uint8Array {
  if (parts.length === 1) return parts[0]!;
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
