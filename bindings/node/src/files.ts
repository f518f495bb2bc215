import type { FileEvent, FileInfo, MadeDirectory, RemovedFiles } from "./contract.js";
import { Feed, type Source } from "./feed.js";
import type { Progress } from "./options.js";

/** Whose rights count and who owns what is made. */
export interface ByUser {
  /** A name or a number, and ":group" if wanted; the box's root if left out. */
  user?: string;
}

/** Copies between this host and a box. */
export interface Copies {
  /** Copies a file or directory of this host into the box. Node.js only. */
  copyIn(hostPath: string, boxPath: string, progress?: (p: Progress) => void, options?: ByUser): Promise<void>;
  /** Copies a file or directory of the box to this host. Node.js only. */
  copyOut(boxPath: string, hostPath: string, progress?: (p: Progress) => void, options?: ByUser): Promise<void>;
}

/** The files of a box that runs, which needs no program for them. Paths in the box are absolute. */
export interface Files extends Copies {
  /** Reads a file of the box. */
  readFile(path: string, options?: ByUser): Promise<Uint8Array>;
  /** Writes a file of the box, and makes its directories. `mode` is 0o644 if left out. */
  writeFile(path: string, data: string | Uint8Array, options?: ByUser & { mode?: number }): Promise<void>;
  /** Looks at a file, without its content. A link that the path leads to is not followed. */
  stat(path: string, options?: ByUser): Promise<FileInfo>;
  /** Whether there is a file of any type, a link that leads nowhere too. */
  exists(path: string, options?: ByUser): Promise<boolean>;
  /**
   * The files below a directory, in the order of their paths; `depth` levels of directories, 1 to 64, 1 if left out.
   * Links below it are not followed. They are asked for when they are needed, up to 10,000 at once.
   */
  list(path: string, options?: ByUser & { depth?: number }): AsyncIterable<FileInfo>;
  /** Makes a directory, and those missing on the way to it. `mode` is 0o755 if left out. One that is there stays as it is. */
  makeDirectory(path: string, options?: ByUser & { mode?: number }): Promise<MadeDirectory>;
  /** Gives a file another path, which is `to` itself. It replaces a file, and a directory only if that is empty. */
  move(from: string, to: string, options?: ByUser): Promise<FileInfo>;
  /** Removes a file or a directory; one that is not empty with `recursive`. Follows no link. */
  remove(path: string, options?: ByUser & { recursive?: boolean }): Promise<RemovedFiles>;
  /** Watches a directory, and with `recursive` all below it. Resolves when the watch stands. */
  watch(path: string, options?: ByUser & { recursive?: boolean }): Promise<Watch>;
}

/**
 * A watch of a directory of a box. `for await` reads its events as they come; the last one is of the type "end".
 * `await using`, or `close`, ends it; leaving a loop does not.
 */
export class Watch extends Feed<FileEvent> {
  constructor(source: Source<FileEvent>) {
    super("watch", source);
  }
}
