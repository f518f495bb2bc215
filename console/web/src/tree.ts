/** Files that were chosen or dropped, those in directories too. */

/** Chosen is a file, with its path below what was chosen. */
export interface Chosen {
  path: string;
  file: File;
}

/** chosen returns the files of an input. */
export const chosen = (files: FileList | null): Chosen[] =>
  [...(files ?? [])].map((file) => ({ path: file.webkitRelativePath || file.name, file }));

/** dropped returns the files that were dropped. The browser gives them away only until the first pause. */
export async function dropped(data: DataTransfer | null): Promise<Chosen[]> {
  const things = [...(data?.items ?? [])].map((item) => item.webkitGetAsEntry() ?? item.getAsFile());
  const files = things.map((thing) => (thing instanceof File ? [{ path: thing.name, file: thing }] : thing ? below(thing) : []));
  return (await Promise.all(files)).flat();
}

async function below(entry: FileSystemEntry): Promise<Chosen[]> {
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    return [{ path: entry.fullPath.slice(1), file }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const all: Chosen[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return all; // it comes in parts
    for (const each of some) all.push(...(await below(each)));
  }
}
