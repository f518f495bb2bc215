import { bytes, fileOptions, text, whole } from "../check.js";
import { NotFoundError } from "../contract.js";
import type { FileInfo, FilePage, MadeDirectory, RemovedFiles } from "../contract.js";
import { Watch, type ByUser, type Copies, type Files } from "../files.js";
import type { Client } from "./client.js";
import { Streamed } from "./streamed.js";

type Options<T> = ByUser & T;

/** The files of a box of a server. */
export class RemoteFiles implements Files {
  /** `client` fails of a box that was closed, `path` is that of the routes. */
  constructor(readonly client: () => Client, readonly path: () => string, readonly copies: () => Copies) {}

  async copyIn(...args: Parameters<Copies["copyIn"]>): Promise<void> {
    await this.copies().copyIn(...args);
  }

  async copyOut(...args: Parameters<Copies["copyOut"]>): Promise<void> {
    await this.copies().copyOut(...args);
  }

  async readFile(path: string, options?: ByUser): Promise<Uint8Array> {
    const client = this.client();
    const reply = await client.send(this.path(), { query: on(path, options), again: true });
    return new Uint8Array(await reply.arrayBuffer().catch((cause) => { throw client.lost(cause); }));
  }

  async writeFile(path: string, data: string | Uint8Array, { mode = 0o644, ...options }: Options<{ mode?: number }> = {}): Promise<void> {
    const query = { ...on(path, options), mode: octal(mode) };
    await this.client().call(this.path(), { method: "PUT", query, body: bytes("data", data), headers: { "Content-Type": "application/octet-stream" }, again: true });
  }

  async stat(path: string, options?: ByUser): Promise<FileInfo> {
    return this.client().call(`${this.path()}:stat`, { query: on(path, options), again: true });
  }

  async exists(path: string, options?: ByUser): Promise<boolean> {
    return this.stat(path, options).then(() => true, (failure) => {
      if (!(failure instanceof NotFoundError && failure.kind === "file_not_found")) throw failure;
      return false;
    });
  }

  async *list(path: string, { depth = 1, ...options }: Options<{ depth?: number }> = {}): AsyncGenerator<FileInfo, void, void> {
    const query = { ...on(path, options), depth: whole("depth", depth, 1, 64) };
    for (let token: string | null | undefined; token !== null;) {
      const page: FilePage = await this.client().call(`${this.path()}:list`, { query: { ...query, page_token: token }, again: true });
      yield* page.files;
      token = page.next_page_token;
    }
  }

  async makeDirectory(path: string, { mode = 0o755, ...options }: Options<{ mode?: number }> = {}): Promise<MadeDirectory> {
    return this.client().call(`${this.path()}:mkdir`, { method: "POST", json: { ...on(path, options), mode: octal(mode) } });
  }

  async move(from: string, to: string, options?: ByUser): Promise<FileInfo> {
    const json = { from: text("from", from), to: text("to", to), ...by(options) };
    return this.client().call(`${this.path()}:move`, { method: "POST", json });
  }

  async remove(path: string, { recursive = false, ...options }: Options<{ recursive?: boolean }> = {}): Promise<RemovedFiles> {
    const query = { ...on(path, options), recursive: Boolean(recursive) };
    const reply = await this.client().call<RemovedFiles>(this.path(), { method: "DELETE", query });
    return { path: reply.path, removed: reply.removed };
  }

  async watch(path: string, { recursive = false, ...options }: Options<{ recursive?: boolean }> = {}): Promise<Watch> {
    const query = { ...on(path, options), recursive: Boolean(recursive) };
    return new Watch(await Streamed.open(this.client(), `${this.path()}:watch`, { query, again: true }));
  }
}

/** on returns the members of a request about one path. */
function on(path: string, options?: ByUser): { path: string; user?: string } {
  return { path: text("path", path), ...by(options) };
}

/** by returns the user that options name. */
function by(options: ByUser = {}): ByUser {
  return fileOptions(options, { user: "string" });
}

function octal(mode: number): string {
  return whole("mode", mode, 0, 0o7777).toString(8);
}
