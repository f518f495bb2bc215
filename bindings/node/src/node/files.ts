import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bytes, fileOptions, text, whole } from "../check.js";
import { InvalidArgumentError, NotFoundError, StorageError } from "../contract.js";
import type { FileInfo, FilePage, MadeDirectory, RemovedFiles } from "../contract.js";
import { Watch, type ByUser, type Files } from "../files.js";
import type { Progress } from "../options.js";
import type { NativeBox } from "./box.js";
import type { CProgress } from "./library.js";
import { Polled } from "./polled.js";

/** files returns the files of a box. The library copies between the box and this host. */
export function files(box: NativeBox): Files {
  return { ...copies(box), ...inPlace(box) };
}

function copies(box: NativeBox): Pick<Files, "copyIn" | "copyOut" | "readFile" | "writeFile"> {
  const copy = async (name: string, from: string, to: string, progress?: (p: Progress) => void, options: ByUser = {}) => {
    const { library } = box.runtime;
    const user = by(options);
    await box.use((handle) => library.told(told(progress), (callback) => library.wait(name, handle, from, to, user, callback, null)));
  };
  const copyIn: Files["copyIn"] = (hostPath, boxPath, ...rest) => copy("sandbox_copy_in", text("hostPath", hostPath), text("boxPath", boxPath), ...rest);
  const copyOut: Files["copyOut"] = (boxPath, hostPath, ...rest) => copy("sandbox_copy_out", text("boxPath", boxPath), text("hostPath", hostPath), ...rest);
  return {
    copyIn: async (...args) => copyIn(...args),
    copyOut: async (...args) => copyOut(...args),
    readFile: async (path, options) => aside(async (file) => {
      await copyOut(path, file, undefined, options);
      return new Uint8Array(await readFile(file));
    }),
    writeFile: async (path, data, { mode = 0o644, ...options } = {}) => aside(async (file) => {
      await writeFile(file, bytes("data", data), { mode: whole("mode", mode, 0, 0o7777) });
      await copyIn(file, path, undefined, options);
    }),
  };
}

/** inPlace returns what is done with files where they are. */
function inPlace(box: NativeBox): Omit<Files, "copyIn" | "copyOut" | "readFile" | "writeFile"> {
  const document = <T>(name: string, ...args: (string | number | null)[]) =>
    box.use((handle) => box.runtime.library.json<T>("wait", name, handle, ...args));
  const stat: Files["stat"] = async (path, options) => document("sandbox_file_stat", text("path", path), by(options));
  return {
    stat,
    exists: async (path, options) => stat(path, options).then(() => true, async (failure) => {
      if (!(failure instanceof NotFoundError)) throw failure;
      await box.info(); // of a box that is gone, it fails the same
      return false;
    }),
    async *list(path, { depth = 1, ...options } = {}) {
      const given = [text("path", path), whole("depth", depth, 1, 64)];
      for (let token: string | null = null;;) {
        const page: FilePage = await document("sandbox_file_list", ...given, 0, token, by(options));
        yield* page.files;
        if ((token = page.next_page_token) === null) return;
      }
    },
    makeDirectory: async (path, { mode = 0o755, ...options } = {}) =>
      document<MadeDirectory>("sandbox_file_make_dir", text("path", path), whole("mode", mode, 0, 0o7777), by(options)),
    move: async (from, to, options) => document<FileInfo>("sandbox_file_move", text("from", from), text("to", to), by(options)),
    remove: async (path, { recursive = false, ...options } = {}) =>
      document<RemovedFiles>("sandbox_file_remove", text("path", path), Number(recursive), by(options)),
    watch: async (path, { recursive = false, ...options } = {}) => {
      const given = [text("path", path), Number(recursive), by(options)];
      const handle = await box.use((pointer) => box.runtime.library.handle("wait", "sandbox_watch_start", pointer, ...given));
      return new Watch(await Polled.of(box.runtime, "sandbox_watch", handle));
    },
  };
}

/** by returns the user that options name, as C takes it. */
function by(options: ByUser = {}): string | null {
  return fileOptions(options, { user: "string" }).user ?? null;
}

/** aside calls f with the name of a file in a directory of its own. */
async function aside<T>(f: (file: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), "sandbox-"));
  try {
    return await f(join(directory, "file"));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "EISDIR") throw new InvalidArgumentError("this is a directory: use copyOut", { cause });
    if (!(cause as NodeJS.ErrnoException).syscall) throw cause;
    throw new StorageError(`can't keep the file in ${directory} on its way: ${(cause as Error).message}`, { cause });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** told returns the function that the library tells a callback's progress. */
export function told(progress: ((p: Progress) => void) | undefined): ((p: CProgress) => void) | undefined {
  if (!progress) return undefined;
  return ({ stage, part, parts, done, total }) => progress({ stage: stage as Progress["stage"], part, parts, done, total: total < 0 ? null : total });
}
