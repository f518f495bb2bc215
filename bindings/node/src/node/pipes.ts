import { InvalidStateError } from "../contract.js";
import type { Output } from "../execution.js";
import type { Library } from "./library.js";
import type { Descriptors } from "./descriptors.js";

const [POLLIN, STDERR] = [1, 2];

/** How much is read at once: what a pipe holds after some output. */
const piece = 256 << 10;

/**
 * The memory that output is read into, for all commands: a piece that somebody holds keeps the whole of it, and one slab
 * for each command would be freed so late that the process grew by 25 MB in 10,000 commands.
 */
let slab: Uint8Array = new Uint8Array(0);

/** The pipes of a command's output. They are read only when there is something to read, so that no read waits. */
export class Pipes {
  readonly #polls: Buffer; // a struct pollfd for each
  readonly #found = Buffer.alloc(12); // a length, then a stream
  #direct = false;

  constructor(readonly library: Library, readonly handle: bigint, readonly fds: number[], readonly descriptors: Descriptors) {
    this.#polls = Buffer.alloc(8 * fds.length);
    fds.forEach((fd, i) => {
      descriptors.add(fd);
      this.#polls.writeInt32LE(fd, 8 * i);
      this.#polls.writeInt16LE(POLLIN, 8 * i + 4);
    });
  }

  /** open tells whether there may be more output. */
  get open(): boolean {
    return this.fds.some((_, i) => this.#fd(i) >= 0);
  }

  /** take reads a piece, or returns null if there is none just now. */
  take(): Output | null {
    const ready = this.open ? this.#ready() : -1;
    if (ready < 0) return null;
    if (slab.length < piece >> 3) slab = Buffer.allocUnsafeSlow(piece);
    const [n, stderr] = this.#read(ready);
    if (n === 0) {
      this.close(); // the library reads no further, whatever background children write
      return null;
    }
    const data = slab.subarray(0, n);
    slab = slab.subarray(n);
    return { stream: stderr ? "stderr" : "stdout", data };
  }

  close(): void {
    this.fds.forEach((_, i) => this.#end(i));
  }

  /** ready returns a pipe with output, or -1, and ends those that have none any more. */
  #ready(): number {
    this.library.poll(this.#polls, this.fds.length);
    let ready = -1;
    this.fds.forEach((_, i) => {
      const events = this.#polls.readInt16LE(8 * i + 6);
      if (events & POLLIN) ready = i;
      else if (events) this.#end(i);
    });
    return ready;
  }

  /** read reads by the library, which counts the bytes; it leaves the pipes of a server's command to be read as they are. */
  #read(ready: number): [length: number, stderr: boolean] {
    if (!this.#direct) {
      try {
        this.library.now("sandbox_exec_read", this.handle, slab, slab.length, this.#found, this.#found.subarray(8));
        return [Number(this.#found.readBigUInt64LE()), this.#found.readInt32LE(8) === STDERR];
      } catch (failure) {
        if (!(failure instanceof InvalidStateError)) throw failure;
        this.#direct = true;
      }
    }
    return [this.library.read(this.#fd(ready), slab, slab.length), ready > 0];
  }

  #fd(i: number): number {
    return this.#polls.readInt32LE(8 * i);
  }

  #end(i: number): void {
    this.descriptors.remove(this.fds[i]!);
    this.#polls.writeInt32LE(-1, 8 * i);
  }
}
