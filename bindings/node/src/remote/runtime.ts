import type { Copies } from "../files.js";
import { creation, text, whole } from "../check.js";
import { ClosedError } from "../own.js";
import { InvalidArgumentError, InvalidStateError, NetworkError, NotFoundError, StoppedError, UnavailableError } from "../contract.js";
import type { Connection } from "../box.js";
import type { Build, BuildOptions } from "../build.js";
import type { BoxInfo, Clones, Image, ImageProgress, Pushed, RuntimeMetrics, ServerInfo, SnapshotNode, Snapshots } from "../contract.js";
import type { CloneOptions, CreateOptions, Progress } from "../options.js";
import { Runtime, type Images } from "../runtime.js";
import { RemoteBox } from "./box.js";
import { failureOf, path, type Client } from "./client.js";
import { Messages } from "./sse.js";

/** The files and sockets of the host that this program runs on. */
export interface Host {
  open(path: string): Promise<Blob>;
  /** exported writes an image of the server to a file. */
  exported: Images["export"];
  startBuild(options: BuildOptions): Promise<Build>;
  copies(box: string): Copies;
  connect(box: string, port: number): Promise<Connection>;
}

/** The boxes of a server. */
export class RemoteRuntime extends Runtime {
  /** The boxes that go when this runtime is closed. */
  readonly owned = new Set<string>();
  readonly #counts = { boxes_created_total: 0, boxes_failed_total: 0, total_commands_executed: 0, total_exec_errors: 0 };
  readonly #made = new Set<string>();
  #shutDown = false;
  #closed = false;

  /** `host` is left out where there are none. */
  constructor(readonly client: Client, readonly host?: Host) {
    super();
  }

  /** use returns the client, unless the runtime was closed. */
  use(): Client {
    if (this.#closed) throw new ClosedError("runtime");
    return this.client;
  }

  readonly images: Images = {
    list: async () => this.use().all<Image>("/v1/images", "images"),
    pull: async (reference, progress) => this.#told<Image>("/v1/images:pull", { reference: text("reference", reference) }, "image", progress),
    import: async (name, source) => {
      const query = { name: text("name", name) };
      return this.use().call<Image>("/v1/images:import", { method: "POST", query, body: await this.#archive(source), headers: { "Content-Type": "application/x-tar" } });
    },
    export: async (reference, file, options) => {
      this.use();
      if (!this.host) throw new InvalidArgumentError("an image is exported to a file: there are no files of a host here");
      await this.host.exported(reference, file, options);
    },
    push: async (reference, { as, compression, progress } = {}) =>
      this.#told<Pushed>("/v1/images:push", { reference: text("reference", reference), as, compression }, "pushed", progress),
    build: async (options) => {
      await using build = await this.#startBuild(options);
      return await build.result();
    },
    startBuild: async (options) => this.#startBuild(options),
    remove: async (reference, { force = false } = {}) => {
      await this.use().call(imagePath(text("reference", reference)), { method: "DELETE", query: { force }, again: true });
    },
  };

  async create(image: string | null, options?: CreateOptions): Promise<RemoteBox> {
    const json = { ...(image === null ? {} : { image }), auto_remove: true, ...creation(image, options) };
    const headers = { "Idempotency-Key": unique() };
    const client = this.use();
    if (this.#shutDown) throw new StoppedError("the runtime was shut down");
    try {
      const [box] = await this.#remember([await client.call<BoxInfo>(client.boxes, { method: "POST", json, headers, again: true })]);
      return box!;
    } catch (failure) {
      this.#counts.boxes_failed_total++;
      throw failure;
    }
  }

  /** clone makes boxes that are like the one with this path. */
  async clone(box: string, json: CloneOptions): Promise<RemoteBox[]> {
    const client = this.use();
    if (this.#shutDown) throw new StoppedError("the runtime was shut down");
    try {
      const { boxes } = await client.call<Clones>(`${box}:clone`, { method: "POST", json });
      return await this.#remember(boxes);
    } catch (failure) {
      this.#counts.boxes_failed_total++;
      throw failure;
    }
  }

  /** remember notes boxes that were made here. It removes those that were made while the runtime was closed or shut down. */
  async #remember(boxes: BoxInfo[]): Promise<RemoteBox[]> {
    if (this.#closed || this.#shutDown) {
      await Promise.allSettled(boxes.map(({ id }) => this.#delete(id)));
      throw this.#closed ? new ClosedError("runtime") : new StoppedError("the runtime was shut down");
    }
    return boxes.map(({ id, auto_remove }) => {
      this.#counts.boxes_created_total++;
      this.#made.add(id);
      if (auto_remove) this.owned.add(id);
      return new RemoteBox(this, id, auto_remove);
    });
  }

  async get(idOrName: string): Promise<RemoteBox> {
    const { id } = await this.use().call<BoxInfo>(this.#path(idOrName), { again: true });
    return new RemoteBox(this, id, false);
  }

  async list(): Promise<BoxInfo[]> {
    return this.use().all(this.client.boxes, "boxes");
  }

  async remove(idOrName: string, { force = false }: { force?: boolean } = {}): Promise<void> {
    const { id = idOrName } = await this.use().call<{ id?: string }>(this.#path(idOrName), { method: "DELETE", query: { force }, again: true });
    this.#forget(id);
  }

  async shutdown({ timeout_seconds = 10 }: { timeout_seconds?: number } = {}): Promise<void> {
    const query = { timeout_seconds: whole("timeout_seconds", timeout_seconds, 0, 2 ** 31 - 1) };
    const client = this.use();
    this.#shutDown = true;
    await Promise.all([...this.#made].map((id) => client.call(`${client.boxes}${path(id)}:stop`, { method: "POST", query }).catch((failure) => {
      if (!(failure instanceof NotFoundError || failure instanceof InvalidStateError)) throw failure; // it does not run
    })));
  }

  /** forget says that a box is gone. */
  #forget(id: string): void {
    this.#made.delete(id);
    this.owned.delete(id);
  }

  async snapshots(box?: string): Promise<SnapshotNode[]> {
    const query = box === undefined ? {} : { box: text("box", box) };
    return (await this.use().call<Snapshots>("/v1/snapshots", { query, again: true })).snapshots;
  }

  async metrics(): Promise<RuntimeMetrics> {
    const { usage } = await this.use().call<ServerInfo>("/v1/info", { again: true });
    return { ...this.#counts, num_running_boxes: usage.running };
  }

  /** discard removes a box that may be gone already. */
  async discard(id: string): Promise<void> {
    if (!this.owned.has(id)) return;
    await this.#delete(id);
    this.#forget(id);
  }

  async #delete(id: string): Promise<void> {
    await this.client.call(this.client.boxes + path(id), { method: "DELETE", query: { force: true }, again: true }).catch((failure) => {
      if (!(failure instanceof NotFoundError)) throw failure;
    });
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const failures = (await Promise.allSettled([...this.owned].map((id) => this.discard(id)))).filter((r) => r.status === "rejected");
    if (failures.length > 0) throw new UnavailableError(`${failures.length} boxes could not be removed`, { cause: failures[0]!.reason });
  }

  /** counted counts the start of a command. */
  async counted<T>(starting: Promise<T>): Promise<T> {
    try {
      const begun = await starting;
      this.#counts.total_commands_executed++;
      return begun;
    } catch (failure) {
      this.failed();
      throw failure;
    }
  }

  /** failed counts a command that could not be started. */
  failed(): void {
    this.#counts.total_exec_errors++;
  }

  /** told asks for work on an image that is told of by events, and returns the document of the event `last`. */
  async #told<T>(where: string, json: object, last: string, progress: (p: Progress) => void = () => {}): Promise<T> {
    const headers = { Accept: "text/event-stream" };
    const reply = await this.use().send(where, { method: "POST", json, headers, again: true });
    try {
      for await (const { kind, data } of new Messages(reply.body!)) {
        if (kind === last) return JSON.parse(data) as T;
        if (kind === "error") throw failureOf(data, "the server reported a failure");
        if (kind !== "progress") continue;
        const { layer, layers, stage, done, total } = JSON.parse(data) as ImageProgress;
        progress({ stage, part: layer, parts: layers, done, total: total || null });
      }
    } catch (failure) {
      throw failure instanceof TypeError ? this.client.lost(failure) : failure;
    }
    throw new NetworkError(`${this.client.url} broke the work on the image off`);
  }

  async #startBuild(options: BuildOptions): Promise<Build> {
    this.use();
    if (!this.host) throw new InvalidArgumentError("an image is built of files: there are no files of a host here");
    return this.host.startBuild(options);
  }

  async #archive(source: string | Blob): Promise<Blob> {
    if (source instanceof Blob) return source;
    if (this.host) return this.host.open(text("source", source));
    throw new InvalidArgumentError("source must be a Blob: there are no files of a host here");
  }

  #path(idOrName: string): string {
    const name = text("idOrName", idOrName);
    if (["", ".", ".."].includes(name)) throw new NotFoundError(`no box ${JSON.stringify(name)}`);
    return this.client.boxes + path(name);
  }
}

function imagePath(reference: string): string {
  const parts = reference.split("/");
  if (parts.some((part) => ["", ".", ".."].includes(part))) throw new InvalidArgumentError(`${JSON.stringify(reference)} is no name of an image`);
  return path("v1", "images", ...parts);
}

/** unique returns a key that no other request has. Pages without TLS have no randomUUID. */
function unique(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}
