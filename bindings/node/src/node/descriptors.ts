import type { Library } from "./library.js";

type Poll = ReturnType<Library["koffi"]["node"]["poll"]>;

/** Waits in the event loop until one of a few descriptors can be read. */
export class Descriptors {
  readonly #polls = new Map<number, Poll>();
  /** The descriptors that nothing was found for since they were asked about: starting and stopping all for each wait costs more. */
  readonly #asked = new Set<number>();
  /** The descriptors that could be read when the last wait ended. */
  readonly ready = new Set<number>();
  #wake = () => {};

  constructor(readonly library: Library) {}

  add(fd: number): void {
    const poll = this.library.koffi.node.poll(fd, { readable: true }, () => {});
    poll.stop();
    this.#polls.set(fd, poll);
  }

  /** remove must come before the descriptor is closed. */
  remove(fd: number): void {
    this.#polls.get(fd)?.close();
    this.#polls.delete(fd);
    this.#asked.delete(fd);
  }

  /** wait returns when a descriptor can be read, or close was called. */
  async wait(): Promise<void> {
    this.ready.clear();
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      for (const [fd, poll] of this.#polls) if (!this.#asked.has(fd)) this.#ask(fd, poll);
    });
  }

  #ask(fd: number, poll: Poll): void {
    this.#asked.add(fd);
    poll.start({ readable: true }, () => {
      poll.stop(); // until it was read
      this.#asked.delete(fd);
      this.ready.add(fd);
      this.#wake();
    });
  }

  close(): void {
    for (const fd of [...this.#polls.keys()]) this.remove(fd);
    this.#wake();
  }
}
