import type { Library } from "./library.js";

type Poll = ReturnType<Library["koffi"]["node"]["poll"]>;

/** Waits in the event loop until one of a few descriptors can be read. */
export class Watch {
  readonly #polls = new Map<number, Poll>();
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
  }

  /** wait returns when a descriptor can be read, or close was called. */
  async wait(): Promise<void> {
    this.ready.clear();
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      for (const [fd, poll] of this.#polls) poll.start({ readable: true }, () => { this.ready.add(fd); resolve(); });
    });
    for (const poll of this.#polls.values()) poll.stop();
  }

  close(): void {
    for (const fd of [...this.#polls.keys()]) this.remove(fd);
    this.#wake();
  }
}
