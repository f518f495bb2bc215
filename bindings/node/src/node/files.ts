import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Files } from "../box.js";
import { bytes, text, whole } from "../check.js";
import { InvalidArgumentError, StorageError } from "../contract.js";
import type { Progress } from "../options.js";
import type { NativeBox } from "./box.js";
import type { CProgress } from "./library.js";

/** files returns the files of a box. The library copies between the box and this host. */
export function files(box: NativeBox): Files {
  const copy = async (name: string, from: string, to: string, progress?: (p: Progress) => void) => {
    const { library } = box.runtime;
    await box.use((handle) => library.told(told(progress), (callback) => library.wait(name, handle, from, to, callback, null)));
  };
  const copyIn: Files["copyIn"] = (hostPath, boxPath, progress) => copy("sandbox_copy_in", text("hostPath", hostPath), text("boxPath", boxPath), progress);
  const copyOut: Files["copyOut"] = (boxPath, hostPath, progress) => copy("sandbox_copy_out", text("boxPath", boxPath), text("hostPath", hostPath), progress);
  return {
    copyIn: async (...args) => copyIn(...args),
    copyOut: async (...args) => copyOut(...args),
    readFile: async (path) => aside(async (file) => {
      await copyOut(path, file);
      return new Uint8Array(await readFile(file));
    }),
    writeFile: async (path, data, { mode = 0o644 } = {}) => aside(async (file) => {
      await writeFile(file, bytes("data", data), { mode: whole("mode", mode, 0, 0o7777) });
      await copyIn(file, path);
    }),
  };
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
