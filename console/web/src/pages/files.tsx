/** The files of a box: browse, upload, download. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, boxPath, Failure } from "../api/client.js";
import type { BoxInfo } from "../api/documents.js";
import { run as runIn } from "../api/events.js";
import { bytes, time } from "../format.js";
import { visible } from "../safe.js";
import { t } from "../texts.js";
import { Empty, Field, MustRun, Problem, useAct } from "../ui/parts.js";

/** Entry is one name in a directory. */
interface Entry {
  name: string;
  kind: "directory" | "file" | "link" | "other";
  size: number;
  changed: number;
  mode: string;
}

/** How many entries of a directory are shown. */
const most = 2000;

/** Files shows a directory of a box. */
export function Files({ box: b }: { box: BoxInfo }): JSX.Element {
  const [dir, setDir] = useState(b.working_dir ?? "/root");
  const [entries, set] = useState<Entry[] | null>(null);
  const [said, say] = useState("");
  const [over, setOver] = useState(false);
  const { failure, run } = useAct();
  const runs = b.status === "running";
  const look = () => run(async () => set(await list(b.id, dir)));
  useEffect(() => {
    if (runs) {
      set(null);
      void look();
    }
  }, [dir, runs]);
  if (!runs) return <MustRun />;
  const upload = (files: FileList | null) =>
    run(async () => {
      for (const file of files ?? []) {
        say(t.files.uploading(visible(file.name)));
        await ask(boxPath(b.id, `/files?path=${encodeURIComponent(join(dir, file.name))}`), {
          method: "PUT",
          body: file,
          headers: { "Content-Type": "application/octet-stream" },
        });
        say(t.files.uploaded(visible(file.name), bytes(file.size)));
      }
      set(await list(b.id, dir));
    });
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void upload(event.dataTransfer?.files ?? null);
  };
  return (
    <div
      class={over ? "drop over" : "drop"}
      onDragOver={(e) => {
        e.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <Where dir={dir} go={setDir} upload={(files) => void upload(files)} />
      <p role="status" class="quiet">
        {said || t.files.drop}
      </p>
      <Problem failure={failure} again={() => void look()} />
      {failure?.code === "files" && <Empty title={t.files.failed} todo={t.files.failedTodo} />}
      {entries?.length === 0 && <Empty title={t.files.empty} todo={t.files.emptyTodo} />}
      {entries && entries.length > 0 && <Table box={b.id} dir={dir} entries={entries} go={setDir} />}
      {!entries && !failure && (
        <p class="quiet" aria-busy="true">
          {t.common.loading}
        </p>
      )}
    </div>
  );
}

function Where({ dir, go, upload }: { dir: string; go: (dir: string) => void; upload: (files: FileList | null) => void }): JSX.Element {
  const [typed, type] = useState(dir);
  useEffect(() => type(dir), [dir]);
  return (
    <form
      class="line-form"
      onSubmit={(e) => {
        e.preventDefault();
        go(join(typed || "/", "."));
      }}
    >
      <button type="button" class="icon" aria-label={t.files.up} disabled={dir === "/"} onClick={() => go(join(dir, ".."))}>
        ↑
      </button>
      <Field label={t.files.path}>
        {(props) => (
          <input {...props} class="code" autocomplete="off" spellcheck={false} value={typed} onInput={(e) => type(e.currentTarget.value)} />
        )}
      </Field>
      <button type="submit">{t.files.go}</button>
      <label class="button primary">
        {t.files.upload}
        <input
          type="file"
          multiple
          class="unseen"
          onChange={(e) => {
            upload(e.currentTarget.files);
            e.currentTarget.value = "";
          }}
        />
      </label>
    </form>
  );
}

function Table({ box: id, dir, entries, go }: { box: string; dir: string; entries: Entry[]; go: (dir: string) => void }): JSX.Element {
  const c = t.files.columns;
  const href = (e: Entry) =>
    boxPath(id, `/files?path=${encodeURIComponent(join(dir, e.name))}${e.kind === "directory" ? "&archive=tar" : ""}`);
  const name = (e: Entry) => (
    <bdi>
      {visible(e.name)}
      {e.kind === "directory" ? "/" : ""}
    </bdi>
  );
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={t.files.title}>
      <table>
        <thead>
          <tr>
            {[c.name, c.size, c.changed, c.mode].map((text) => (
              <th key={text} scope="col">
                {text}
              </th>
            ))}
            <th scope="col">{t.files.download}</th>
          </tr>
        </thead>
        <tbody>
          {entries.slice(0, most).map((e) => (
            <tr key={e.name}>
              <td>
                {e.kind === "directory" ? (
                  <button type="button" class="link code" onClick={() => go(join(dir, e.name))}>
                    {name(e)}
                  </button>
                ) : (
                  <span class="code">{name(e)}</span>
                )}
              </td>
              <td>{e.kind === "file" ? bytes(e.size) : ""}</td>
              <td>{time(new Date(e.changed * 1000).toISOString())}</td>
              <td class="code">{e.mode}</td>
              <td>
                {e.kind !== "other" && (
                  <a
                    href={href(e)}
                    download={e.kind === "directory" ? `${e.name}.tar` : e.name}
                    aria-label={t.files.downloadOf(visible(e.name))}
                  >
                    {t.files.download}
                  </a>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {entries.length > most && <p class="quiet">{t.files.cut(most)}</p>}
    </div>
  );
}

/** list lists a directory: programs of the box do it, for the server has no route that does. A name has no slash, so that "/\n" ends each entry. */
async function list(id: string, dir: string): Promise<Entry[]> {
  const { end, stdout, stderr } = await runIn(id, [
    "find",
    `${dir.replace(/\/$/, "")}/`,
    "-mindepth",
    "1",
    "-maxdepth",
    "1",
    "-exec",
    "stat",
    "-c",
    "%f %s %Y %n/",
    "{}",
    "+",
  ]);
  if (end.exit_code !== 0 && !stdout) throw new Failure(0, "files", stderr || end.reason || end.status);
  return stdout
    .split("/\n")
    .filter(Boolean)
    .map(entry)
    .sort((a, b) => Number(b.kind === "directory") - Number(a.kind === "directory") || a.name.localeCompare(b.name));
}

const kinds: Record<number, Entry["kind"]> = { 0x4000: "directory", 0x8000: "file", 0xa000: "link" };

function entry(line: string): Entry {
  const [mode = "0", size = "0", changed = "0"] = line.split(" ", 3);
  const bits = parseInt(mode, 16);
  return {
    name: line.slice(line.lastIndexOf("/") + 1),
    kind: kinds[bits & 0xf000] ?? "other",
    size: Number(size),
    changed: Number(changed),
    mode: (bits & 0o7777).toString(8).padStart(4, "0"),
  };
}

/** join puts a name behind a directory, and takes "." and ".." for what they mean. */
function join(dir: string, name: string): string {
  const parts: string[] = [];
  for (const part of `${dir}/${name}`.split("/")) {
    if (part === "..") parts.pop();
    else if (part && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}`;
}
