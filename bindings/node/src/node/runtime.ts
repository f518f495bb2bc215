import { creation, text, whole } from "../check.js";
import { ClosedError } from "../own.js";
import { InvalidArgumentError } from "../contract.js";
import type { BoxInfo, Image, Pushed, RuntimeMetrics, SnapshotNode } from "../contract.js";
import type { CreateOptions, RemoteOptions } from "../options.js";
import { Runtime, type Images } from "../runtime.js";
import { NativeBox } from "./box.js";
import { build, startBuild } from "./builds.js";
import { told } from "./files.js";
import { Library } from "./library.js";

/** What the C library opens: a home of this host, in process, or a server. */
export class NativeRuntime extends Runtime {
  /** What executions and watches hold; it is released before the runtime. */
  readonly held = new Set<{ release(): void }>();
  #closing: Promise<void> | undefined;

  private constructor(readonly library: Library, readonly opened: bigint) {
    super();
  }

  /** local opens a home of this host. */
  static async local(home?: string): Promise<NativeRuntime> {
    return this.#open("sandbox_runtime_new", home === undefined ? null : text("home", home), null);
  }

  /** server opens a server, of which a Unix socket needs no key. */
  static async server({ url, apiKey, pathPrefix }: RemoteOptions): Promise<NativeRuntime> {
    return this.#open("sandbox_runtime_new_remote", text("url", String(url)), apiKey === undefined ? null : text("apiKey", apiKey), pathPrefix === undefined ? null : text("pathPrefix", pathPrefix));
  }

  /** anywhere opens what the command line would use, or the server of a stored profile. */
  static async anywhere(profile?: string): Promise<NativeRuntime> {
    return this.#open("sandbox_runtime_open", profile === undefined ? null : text("profile", profile));
  }

  static async #open(name: string, ...args: (string | null)[]): Promise<NativeRuntime> {
    const library = await Library.load();
    return new NativeRuntime(library, await library.handle("call", name, ...args));
  }

  get closed(): boolean {
    return this.#closing !== undefined;
  }

  get handle(): bigint {
    if (this.closed) throw new ClosedError("runtime");
    return this.opened;
  }

  /**
   * hold returns what `make` makes of a handle. If that fails, or the runtime was closed behind the call that made the
   * handle, it is left and freed.
   */
  async hold<T>(free: string, handle: bigint, make: () => T, leave = async () => {}): Promise<T> {
    try {
      if (this.closed) throw new ClosedError("runtime");
      return make();
    } catch (failure) {
      await leave().catch(() => {}); // the first failure is told
      this.library.freeSoon(free, handle);
      throw failure;
    }
  }

  readonly images: Images = {
    list: async () => this.library.json<Image[]>("call", "sandbox_image_list", this.handle),
    pull: async (reference, progress) => this.library.told(told(progress), async (callback) =>
      this.library.json<Image>("wait", "sandbox_image_pull", this.handle, text("reference", reference), callback, null)),
    import: async (name, source) => {
      if (typeof source !== "string") throw new InvalidArgumentError("source must be a path of this host");
      return this.library.json<Image>("wait", "sandbox_image_import", this.handle, text("name", name), text("source", source), null, null);
    },
    export: async (reference, file, { compression = "zstd" } = {}) =>
      this.library.wait("sandbox_image_export", this.handle, text("reference", reference), text("file", file), text("compression", compression), null, null),
    push: async (reference, { as = "", compression = "zstd", progress } = {}) => this.library.told(told(progress), async (callback) =>
      this.library.json<Pushed>("wait", "sandbox_image_push", this.handle, text("reference", reference), text("as", as), text("compression", compression), callback, null)),
    build: async (options) => build(this, options),
    startBuild: async (options) => startBuild(this, options),
    remove: async (reference, { force = false } = {}) =>
      this.library.wait("sandbox_image_remove", this.handle, text("reference", reference), Number(force)),
  };

  async create(image: string | null, options?: CreateOptions): Promise<NativeBox> {
    const { name, rootfs_path, env = {}, volumes = [], ports = [], network = "Isolated", auto_remove = true, ...rest } = creation(image, options);
    const rootfs = image === null ? { RootfsPath: rootfs_path } : { Image: image };
    const document = JSON.stringify({ rootfs, env, volumes, ports, network, auto_remove, ...rest });
    const handle = name === undefined
      ? await this.library.handle("wait", "sandbox_create_box", this.handle, document)
      : await this.library.handle("wait", "sandbox_create_named_box", this.handle, name, document);
    return this.#box(handle, auto_remove);
  }

  async get(idOrName: string): Promise<NativeBox> {
    return this.#box(await this.library.handle("call", "sandbox_get", this.handle, text("idOrName", idOrName)), false);
  }

  /** made returns a box that was made here, by its id; `owned` says that it is to be removed. */
  async made(id: string, owned: boolean): Promise<NativeBox> {
    return this.#box(await this.library.handle("call", "sandbox_get", this.handle, id), owned);
  }

  #box(handle: bigint, owned: boolean): NativeBox {
    return new NativeBox(this, this.library.id("sandbox_box_id", handle), handle, owned);
  }

  async list(): Promise<BoxInfo[]> {
    return this.library.json("call", "sandbox_list_info", this.handle);
  }

  async remove(idOrName: string, { force = false }: { force?: boolean } = {}): Promise<void> {
    await this.library.call("sandbox_remove", this.handle, text("idOrName", idOrName), Number(force));
  }

  async snapshots(box?: string): Promise<SnapshotNode[]> {
    return this.library.json("call", "sandbox_snapshots", this.handle, box === undefined ? null : text("box", box));
  }

  async metrics(): Promise<RuntimeMetrics> {
    return this.library.json("call", "sandbox_runtime_metrics", this.handle);
  }

  async shutdown({ timeout_seconds = 10 }: { timeout_seconds?: number } = {}): Promise<void> {
    await this.library.wait("sandbox_runtime_shutdown", this.handle, whole("timeout_seconds", timeout_seconds, -1, 2 ** 31 - 1));
  }

  async close(): Promise<void> {
    return this.#closing ??= (async () => {
      for (const held of [...this.held]) held.release();
      await this.library.freeSlowly("sandbox_runtime_free", this.opened);
    })();
  }
}
