import { CanceledError, InvalidStateError } from "./contract.js";

/** Where the events of a {@link Feed} come from. */
export interface Source<T> {
  /** Waits for the next event; null is behind the last one. */
  next(): Promise<T | null>;
  /** Ends the source, and a read that waits. */
  release(): void | Promise<void>;
}

/**
 * Events that come one by one. `for await` reads them as they come; the last one is of the type "end".
 * `await using`, or `close`, ends it; leaving a loop does not.
 */
export abstract class Feed<T> implements AsyncDisposable {
  readonly #what: string;
  readonly #source: Source<T>;
  #reading = false;
  #closed = false;

  constructor(what: string, source: Source<T>) {
    this.#what = what;
    this.#source = source;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, void> {
    for (let event = await this.read(); event !== null; event = await this.read()) yield event;
  }

  /** Waits for the next event, and resolves to null behind the last one. */
  async read(): Promise<T | null> {
    if (this.#closed) throw this.#canceled();
    if (this.#reading) throw new InvalidStateError(`another call reads this ${this.#what}: one does at a time`);
    this.#reading = true;
    try {
      return await this.#source.next();
    } catch (failure) {
      if (this.#closed) throw this.#canceled();
      throw failure;
    } finally {
      this.#reading = false;
    }
  }

  #canceled(): CanceledError {
    return new CanceledError(`the ${this.#what} was closed`);
  }

  /** Ends it. A second call does nothing. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#source.release();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
