import type { ExitEvent, Log } from "../contract.js";
import { NetworkError, ResourceExhaustedError } from "../contract.js";
import type { Output } from "../execution.js";
import type { Client } from "./client.js";
import { Messages, type Message } from "./sse.js";

/** How often in a row a stream is asked for without a new event. */
const tries = 3;
const pause = 100;

/**
 * The output of a command that takes no input, read as Server-Sent Events. A connection that
 * was lost is made anew, and goes on where it was.
 */
export class Events {
  readonly #abort = new AbortController();
  #messages: Messages | undefined;
  readonly #pieces: AsyncGenerator<Output, void, void>;
  exit: ExitEvent | undefined;
  #after = 0;

  constructor(readonly client: Client, readonly path: string) {
    this.#pieces = this.#all();
  }

  async read(): Promise<Output | null> {
    const { done, value } = await this.#pieces.next();
    return done ? null : value;
  }

  close(): void {
    this.#abort.abort();
    this.#messages?.cancel();
  }

  async *#all(): AsyncGenerator<Output, void, void> {
    for (let idle = 0; !this.exit; idle++) {
      const last = this.#after;
      let why: unknown = new Error("the stream ended early");
      const request = { again: true, abort: this.#abort.signal, query: { after: last || undefined } };
      const reply = await this.client.send(this.path, request);
      try {
        this.#messages = new Messages(reply.body!);
        for await (const message of this.#messages) {
          const output = this.#take(message);
          if (output) yield output;
          if (this.exit) return;
        }
      } catch (failure) {
        if (failure instanceof NetworkError || failure instanceof ResourceExhaustedError) throw failure;
        why = failure;
      }
      if (this.#after > last) idle = 0;
      if (idle + 1 >= tries || this.#abort.signal.aborted) throw this.client.lost(why);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  /** take returns the output of a message, if it has some that is new. */
  #take({ kind, data }: Message): Output | null {
    const event = decoded(data);
    switch (kind) {
      case "exit":
        this.exit = event as ExitEvent;
        return null;
      case "gap":
        throw new ResourceExhaustedError("output was dropped, because it was not read for so long that the server's spool was full");
      case "log": {
        const log = event as Log;
        if (log.seq <= this.#after) return null;
        this.#after = log.seq;
        return { stream: log.stream as Output["stream"], data: log.encoding === "base64" ? fromBase64(log.data) : new TextEncoder().encode(log.data) };
      }
    }
    return null; // a kind that this client does not know
  }
}

/** decoded returns the document of an event. */
export function decoded(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch (cause) {
    throw new NetworkError("the server sent an event that can't be read", { cause });
  }
}

function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}
