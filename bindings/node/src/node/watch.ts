import type { FileEvent } from "../contract.js";
import { CanceledError, TimeoutError } from "../contract.js";
import { Watch } from "../files.js";
import { Descriptors } from "./descriptors.js";
import type { Library } from "./library.js";

/** What a watch holds: it is released by its owner, with its runtime, or when it was forgotten. */
export class HeldWatch {
  readonly descriptors: Descriptors;
  released = false;

  constructor(readonly library: Library, readonly handle: bigint, readonly all: Set<{ release(): void }>) {
    this.descriptors = new Descriptors(library);
    this.descriptors.add(library.descriptor("sandbox_watch_fd", handle));
    all.add(this);
  }

  /** release ends the watch. */
  release(): void {
    if (this.released) return;
    this.released = true;
    this.all.delete(this);
    this.descriptors.close();
    this.library.freeSoon("sandbox_watch_free", this.handle);
  }
}

const forgotten = new FinalizationRegistry<HeldWatch>((held) => held.release());

/** A watch of this host, or of a server that the C library talks to. It takes no thread. */
export class NativeWatch extends Watch {
  #ended = false;

  constructor(readonly held: HeldWatch) {
    super();
    forgotten.register(this, held, this);
  }

  protected async next(): Promise<FileEvent | null> {
    const { descriptors, library, handle } = this.held;
    while (!this.#ended) {
      await descriptors.wait(); // also for an event that is there: others have their turn, however much happens
      if (this.held.released) throw new CanceledError("the watch was closed");
      try {
        const event = await library.json<FileEvent>("now", "sandbox_watch_read", handle, 0);
        this.#ended = event.type === "end";
        return event;
      } catch (failure) {
        if (!(failure instanceof TimeoutError)) throw failure; // it will be there in a moment
      }
    }
    return null;
  }

  protected release(): void {
    forgotten.unregister(this);
    this.held.release();
  }
}
