import type { Source } from "../feed.js";
import type { Client, Request } from "./client.js";
import { decoded } from "./events.js";
import { Messages, type Message } from "./sse.js";

/** Events of a server, read as Server-Sent Events until one of the type "end". A connection that is lost ends them. */
export class Streamed<T extends { type: string }> implements Source<T> {
  readonly #events: AsyncGenerator<Message, void, void>;
  #ended = false;

  private constructor(readonly client: Client, readonly messages: Messages) {
    this.#events = messages[Symbol.asyncIterator]();
  }

  /** open sends a request whose reply are events. */
  static async open<T extends { type: string }>(client: Client, where: string, request: Request): Promise<Streamed<T>> {
    return new Streamed(client, new Messages((await client.send(where, request)).body!));
  }

  async next(): Promise<T | null> {
    if (this.#ended) return null;
    const { value } = await this.#events.next().catch((cause) => { throw this.client.lost(cause); });
    if (!value) throw this.client.lost(new Error("the stream ended early"));
    const event = decoded(value.data) as T;
    this.#ended = event.type === "end";
    return event;
  }

  release(): void {
    this.messages.cancel();
  }
}
