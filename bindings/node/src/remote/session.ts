import { NetworkError } from "../contract.js";
import type { Output } from "../execution.js";
import type { SandboxError } from "../failure.js";
import { failure, type Client } from "./client.js";

/** How many bytes are sent at once. */
const frame = 64 << 10;

/** The frames of text that a server sends. */
interface Told {
  type: string;
  exit_code?: number | null;
  signal?: number | null;
  code?: string;
  message?: string;
}

/** A connection to a command that takes input, over a WebSocket. */
export class Session {
  exit: Told | undefined;
  readonly #waiting: Output[] = [];
  #failure: SandboxError | undefined;
  #left = false;
  #wake = () => {};

  private constructor(readonly socket: WebSocket, readonly client: Client) {
    socket.onmessage = (event) => { this.#take(event.data as ArrayBuffer | string); this.#wake(); };
    socket.onclose = socket.onerror = () => this.#end(client.lost(new Error("the WebSocket was closed")));
  }

  /** open connects. A failure says no more than that: a browser tells nothing else about a WebSocket. */
  static async open(client: Client, path: string, query?: Record<string, boolean>): Promise<Session> {
    const session = new Session(await client.socket(path, query), client); // listens before the first frame comes
    await new Promise<void>((resolve) => {
      session.socket.onopen = () => resolve();
      session.#wake = resolve;
    });
    if (session.#failure && !session.exit) throw session.#failure;
    return session;
  }

  /** read returns the next piece of output, or null behind the last one of a command that ended. */
  async read(): Promise<Output | null> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next) return next;
      if (this.exit) return null;
      if (this.#failure) throw this.#failure;
      await new Promise<void>((resolve) => { this.#wake = resolve; });
    }
  }

  write(data: Uint8Array): void {
    for (let at = 0; at < data.length; at += frame) this.#send(data.subarray(at, at + frame));
  }

  tell(message: { type: string; [member: string]: unknown }): void {
    this.#send(JSON.stringify(message));
  }

  /** close ends the connection; a read that waits fails. */
  close(): void {
    this.#left = true;
    this.socket.close(1000);
    this.#end(this.client.lost(new Error("it was closed")));
  }

  /** detach leaves the command to the next client, which begins behind what this one was sent. */
  async detach(): Promise<void> {
    if (!this.exit && !this.#failure) {
      this.tell({ type: "detach" });
      await new Promise<void>((resolve) => { this.socket.onclose = () => resolve(); });
    }
    this.close();
  }

  #send(data: string | Uint8Array): void {
    if (this.exit) return; // the command takes nothing any more
    if (this.#failure) throw this.#failure;
    this.socket.send(data as string | Uint8Array<ArrayBuffer>);
  }

  #end(why: SandboxError): void {
    this.#failure ??= why;
    this.#wake();
  }

  #take(data: ArrayBuffer | string): void {
    if (this.#left) return;
    if (typeof data !== "string") return this.#output(new Uint8Array(data));
    const told = JSON.parse(data) as Told;
    if (told.type === "exit") this.exit = told;
    if (told.type === "error") this.#end(failure(told.code ?? "", told.message ?? "the server says no more"));
  }

  #output(bytes: Uint8Array): void {
    if (bytes[0] !== 1 && bytes[0] !== 2) return this.#end(new NetworkError("the server sent output of an unknown stream"));
    this.#waiting.push({ stream: bytes[0] === 1 ? "stdout" : "stderr", data: bytes.subarray(1) });
  }
}
