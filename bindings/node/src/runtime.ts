import type { Box } from "./box.js";
import type { Build, BuildOptions } from "./build.js";
import type { BoxInfo, Compression, Image, Pushed, RuntimeMetrics, SnapshotNode } from "./contract.js";
import type { CreateOptions, Progress } from "./options.js";

/** How an image is pushed. */
export interface PushOptions {
  /** With the registry: `registry.example/team/app:1`. */
  as?: string;
  compression?: Compression;
  progress?: (p: Progress) => void;
}

/** The images that boxes are made from. */
export interface Images {
  list(): Promise<Image[]>;
  /** Gets an image from its registry, or a newer one. */
  pull(reference: string, progress?: (p: Progress) => void): Promise<Image>;
  /**
   * Makes an image of an archive: a tar of a root file system, a docker archive, a tar of an OCI layout. It
   * is a path of this host on Node.js, which may be a directory in process, or the content everywhere else.
   */
  import(name: string, source: string | Blob): Promise<Image>;
  /** Writes an image to a file of this host, as an OCI archive. Where there are no files of a host it fails. */
  export(reference: string, file: string, options?: { compression?: Compression }): Promise<void>;
  /** Sends an image to the registry that `as` names, or its own name. What the registry has is not sent. */
  push(reference: string, options?: PushOptions): Promise<Pushed>;
  /** Builds an image of a recipe. Where there are no files of a host it fails. */
  build(options: BuildOptions): Promise<Image>;
  /** Begins a build, whose events are read as they come. The recipe is read before. */
  startBuild(options: BuildOptions): Promise<Build>;
  /** Removes an image; one that boxes were made from only with `force`. */
  remove(reference: string, options?: { force?: boolean }): Promise<void>;
}

/** A place where boxes are: a home of this host, or a server. `await using`, or `close`, ends its use. */
export abstract class Runtime implements AsyncDisposable {
  abstract readonly images: Images;
  /** Makes a box from an image, or with null from `rootfs_path` of the options, and starts it. */
  abstract create(image: string | null, options?: CreateOptions): Promise<Box>;
  /** Finds a box by its id, its name, or a unique beginning of its id. */
  abstract get(idOrName: string): Promise<Box>;
  /** All boxes, newest first, without their environment. */
  abstract list(): Promise<BoxInfo[]>;
  /** Removes a box and its disk; a running one with `force` only. */
  abstract remove(idOrName: string, options?: { force?: boolean }): Promise<void>;
  /** The snapshots of a box, which may be gone, or of all boxes: each behind the one that it stands on. */
  abstract snapshots(box?: string): Promise<SnapshotNode[]>;
  /** What this runtime has counted since it was opened. */
  abstract metrics(): Promise<RuntimeMetrics>;
  /** Stops the boxes that it made, and refuses to make others. */
  abstract shutdown(options?: { timeout_seconds?: number }): Promise<void>;
  /** Removes the boxes that it made with auto_remove, and ends its use and that of its objects. */
  abstract close(): Promise<void>;

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** boxOf makes a box in a runtime of its own, which ends with the box. */
export async function boxOf(runtime: Runtime, image: string | null, options?: CreateOptions): Promise<Box> {
  try {
    const box = await runtime.create(image, options);
    const close = box.close.bind(box);
    box.close = async () => {
      try {
        await close();
      } finally {
        await runtime.close();
      }
    };
    return box;
  } catch (failure) {
    await runtime.close();
    throw failure;
  }
}
