import { NetworkError } from "../contract.js";

/** A message of a stream of Server-Sent Events. */
export interface Message {
  kind: string;
  data: string;
}

/** The most characters of a message. */
const most = 16 << 20;

/** The messages of a stream, which may end in the middle of one. */
export class Messages {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
  }

  /**
   * cancel ends the stream, and a read that waits. Aborting its request is not enough: Node.js 20 forgets the signal of
   * a request whose reply has begun when it collects garbage, and the connection stays open.
   */
  cancel(): void {
    void this.#reader.cancel().catch(() => {}); // of a connection that was lost
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Message, void, void> {
    let parts: string[] = []; // of a message that has not come to its end: it is searched once, however long it is
    let size = 0;
    let held = "";
    for await (const piece of this.#pieces()) {
      const text = held + piece;
      held = text.endsWith("\n") && !text.endsWith("\n\n") ? "\n" : ""; // perhaps half of an end
      const [first, ...others] = text.slice(0, text.length - held.length).split("\n\n");
      parts.push(first!);
      size += first!.length;
      for (const other of others) {
        const message = parse(parts.join(""));
        parts = [other];
        size = other.length;
        if (message) yield message;
      }
      if (size > most) throw new NetworkError("the server sent an event that is too long");
    }
  }

  /** Yields the stream's text. Not all browsers can iterate over a stream itself. */
  async *#pieces(): AsyncGenerator<string, void, void> {
    const decoder = new TextDecoder();
    try {
      for (let piece = await this.#reader.read(); !piece.done; piece = await this.#reader.read()) yield decoder.decode(piece.value, { stream: true });
    } finally {
      this.cancel();
    }
  }
}

/** parse returns a message, or null for a comment. */
function parse(lines: string): Message | null {
  const message: Message = { kind: "message", data: "" };
  let data: string[] | undefined;
  for (const line of lines.split("\n")) {
    const [, field, value] = /^([a-z]+): ?(.*)$/s.exec(line.replace(/\r$/, "")) ?? [];
    if (field === "event") message.kind = value!;
    if (field === "data") (data ??= []).push(value!);
  }
  return data ? { ...message, data: data.join("\n") } : null;
}
