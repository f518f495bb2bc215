import { CanceledError, TimeoutError } from "../contract.js";
import type { Source } from "../feed.js";
import { Descriptors } from "./descriptors.js";
import type { Library } from "./library.js";
import type { NativeRuntime } from "./runtime.js";

/** What a source holds: it is released by its owner, with its runtime, or when it was forgotten. */
class Held {
  readonly descriptors: Descriptors;
  released = false;

  constructor(readonly library: Library, readonly name: string, readonly handle: bigint, readonly all: Set<{ release(): void }>) {
    this.descriptors = new Descriptors(library);
    this.descriptors.add(library.descriptor(`${name}_fd`, handle));
    all.add(this);
  }

  async release(): Promise<void> {
    if (this.released) return;
    this.released = true;
    this.all.delete(this);
    this.descriptors.close();
    await this.library.freed(`${this.name}_free`, this.handle);
  }
}

const forgotten = new FinalizationRegistry<Held>((held) => void held.release());

/** Events of a handle that the C library has a descriptor of, such as "sandbox_watch". They take no thread. */
export class Polled<T extends { type: string }> implements Source<T> {
  readonly #held: Held;
  #ended = false;

  constructor(library: Library, name: string, handle: bigint, all: Set<{ release(): void }>) {
    this.#held = new Held(library, name, handle, all);
    forgotten.register(this, this.#held, this);
  }

  /** of takes over a handle of a runtime. */
  static of<T extends { type: string }>(runtime: NativeRuntime, name: string, handle: bigint): Promise<Polled<T>> {
    return runtime.hold(`${name}_free`, handle, () => new Polled<T>(runtime.library, name, handle, runtime.held));
  }

  async next(): Promise<T | null> {
    const { descriptors, library, name, handle } = this.#held;
    while (!this.#ended) {
      await descriptors.wait(); // also for an event that is there: others have their turn, however much happens
      if (this.#held.released) throw new CanceledError("it was closed");
      try {
        const event = await library.json<T>("now", `${name}_read`, handle, 0);
        this.#ended = event.type === "end";
        return event;
      } catch (failure) {
        if (!(failure instanceof TimeoutError)) throw failure; // it will be there in a moment
      }
    }
    return null;
  }

  release(): Promise<void> {
    forgotten.unregister(this);
    return this.#held.release();
  }
}
