import { NetworkError } from "../contract.js";

/** A message of a stream of Server-Sent Events. */
export interface Message {
  kind: string;
  data: string;
}

/** The most characters of a message. */
const most = 8 << 20;

/** messages yields the messages of a stream, and returns at its end, which may be in the middle of one. */
export async function* messages(body: ReadableStream<Uint8Array>): AsyncGenerator<Message, void, void> {
  let rest = "";
  for await (const text of pieces(body)) {
    rest += text;
    let begin = 0;
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n", begin)) {
      const message = parse(rest.slice(begin, end));
      begin = end + 2;
      if (message) yield message;
    }
    rest = rest.slice(begin);
    if (rest.length > most) throw new NetworkError("the server sent an event that is too long");
  }
}

/** pieces yields a stream's text. Not all browsers can iterate over a stream itself. */
async function* pieces(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) yield decoder.decode(piece.value, { stream: true });
  } finally {
    await reader.cancel().catch(() => {}); // of a connection that was lost
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
