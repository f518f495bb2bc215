import { closeSync, constants, openSync } from "node:fs";
import type { Output } from "../execution.js";
import type { Library } from "./library.js";
import { Watch } from "./watch.js";

const [EINTR, EAGAIN] = [4, 11];

/** How much is read at once: what a pipe holds. */
const piece = 64 << 10;

/** own opens a descriptor of a pipe anew, because the box shares the flags of the one it came by. */
export function own(fd: number, flag: number): number {
  return openSync(`/proc/self/fd/${fd}`, flag | constants.O_NONBLOCK);
}

/** The pipes of a command's output, which are read without a thread. */
export class Pipes {
  readonly #fds: number[];
  #slab = new Uint8Array(0);
  #turn = 0;

  constructor(readonly library: Library, fds: number[], readonly watch: Watch) {
    this.#fds = fds.map((fd) => own(fd, constants.O_RDONLY));
    for (const fd of this.#fds) watch.add(fd);
  }

  /** open tells whether there may be more output. */
  get open(): boolean {
    return this.#fds.some((fd) => fd >= 0);
  }

  /** take reads a piece, or returns null if there is none just now. The streams take turns. */
  take(): Output | null {
    for (let tried = 0; tried < this.#fds.length; tried++) {
      const i = this.#turn = (this.#turn + 1) % this.#fds.length;
      const data = this.#fds[i]! >= 0 ? this.#read(i) : null;
      if (data) return { stream: i === 0 ? "stdout" : "stderr", data };
    }
    return null;
  }

  close(): void {
    for (let i = 0; i < this.#fds.length; i++) this.#close(i);
  }

  #read(i: number): Uint8Array | null {
    if (this.#slab.length < piece >> 3) this.#slab = Buffer.allocUnsafeSlow(piece);
    const n = this.library.read(this.#fds[i]!, this.#slab, this.#slab.length);
    if (n === -EAGAIN || n === -EINTR) return null;
    if (n <= 0) {
      this.#close(i);
      return null;
    }
    const data = this.#slab.subarray(0, n);
    this.#slab = this.#slab.subarray(n);
    return data;
  }

  #close(i: number): void {
    const fd = this.#fds[i]!;
    if (fd < 0) return;
    this.#fds[i] = -1;
    this.watch.remove(fd);
    closeSync(fd);
  }
}
