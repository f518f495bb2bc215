/** The files of a box: browse, upload, download, move and remove. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, box, boxPath, failureOf, type Failure } from "../api/client.js";
import type { BoxInfo, FileInfo, FilePage } from "../api/documents.js";
import { bytes, time } from "../format.js";
import { visible } from "../safe.js";
import { t } from "../texts.js";
import { chosen, dropped, type Chosen } from "../tree.js";
import { Confirm, Dialog, Empty, Field, MustRun, Problem, useAct } from "../ui/parts.js";
import { useWatch } from "../watch.js";

/** How many files of a directory are shown. */
const most = 2000;

/** Asked is what a dialog asks for: the path of a new directory, another path of a file, or whether to remove it. */
type Asked = { what: "mkdir" } | { what: "move" | "remove"; file: FileInfo };

/** Files shows a directory of a box, as it is now. */
export function Files({ box: b }: { box: BoxInfo }): JSX.Element {
  const [dir, setDir] = useState(b.working_dir ?? "/root");
  const [said, say] = useState("");
  const [over, setOver] = useState(false);
  const [asked, question] = useState<Asked | null>(null);
  const { failure: refused, run } = useAct();
  const runs = b.status === "running";
  const { page, failure, look } = useListing(b.id, dir, runs);
  if (!runs) return <MustRun />;
  const upload = (files: Chosen[]) =>
    run(async () => {
      for (const { path, file } of files) {
        say(t.files.uploading(visible(path)));
        const headers = { "Content-Type": "application/octet-stream" };
        await ask(boxPath(b.id, `/files?path=${encodeURIComponent(join(dir, path))}`), { method: "PUT", body: file, headers });
        say(t.files.uploaded(visible(path), bytes(file.size)));
      }
    }).then(() => look());
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void dropped(event.dataTransfer).then(upload);
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
      <Where dir={dir} go={setDir} upload={(files) => void upload(files)} mkdir={() => question({ what: "mkdir" })} />
      <p role="status" class="quiet">
        {(!refused && said) || t.files.drop}
      </p>
      <Problem failure={refused} />
      <Problem failure={failure} again={() => void look()} />
      {page?.files.length === 0 && <Empty title={t.files.empty} todo={t.files.emptyTodo} />}
      {page && page.files.length > 0 && <Table box={b.id} dir={dir} page={page} go={setDir} ask={question} />}
      {!page && !failure && (
        <p class="quiet" aria-busy="true">
          {t.common.loading}
        </p>
      )}
      {asked && (
        <Question
          box={b.id}
          dir={dir}
          asked={asked}
          onClose={() => {
            question(null);
            void look();
          }}
        />
      )}
    </div>
  );
}

/** Listing is a directory as it was last read, and why it can't be read now. */
interface Listing {
  page: FilePage | null;
  failure: Failure | null;
}

const unread: Listing = { page: null, failure: null };

/**
 * useListing reads a directory of a box, and again after changes in it and when look is called. The answer about one that is
 * shown no more may come behind that about the next one: it is dropped.
 */
function useListing(id: string, dir: string, runs: boolean): Listing & { look: (background?: boolean) => Promise<void> } {
  const [listing, set] = useState(unread);
  const shown = useRef(dir);
  shown.current = dir;
  const look = async (background = false) => {
    const read = await list(id, dir, background).then(
      (page) => ({ page, failure: null }),
      (thrown) => ({ failure: failureOf(thrown) }),
    );
    if (shown.current === dir) set((old) => ({ ...old, ...read }));
  };
  useEffect(() => set(unread), [dir, runs]);
  useWatch(id, dir, runs, () => void look(true));
  return { ...listing, look };
}

/** Question asks what is still to be known for a change, and makes it. */
function Question({ box: id, dir, asked, onClose }: { box: string; dir: string; asked: Asked; onClose: () => void }): JSX.Element {
  const [path, put] = useState(asked.what === "mkdir" ? `${dir.replace(/\/$/, "")}/` : asked.file.path);
  const { busy, failure, run } = useAct();
  if (asked.what === "remove") {
    const file = asked.file;
    return (
      <Confirm
        title={t.files.removeTitle(visible(file.name))}
        text={file.type === "directory" ? t.files.removeAll : t.files.removeText}
        button={t.common.remove}
        act={() => box(id, `/files?path=${encodeURIComponent(file.path)}&recursive=true`, { method: "DELETE" })}
        onClose={onClose}
      />
    );
  }
  const body = asked.what === "mkdir" ? { path } : { from: asked.file.path, to: path };
  const submit = (event: Event) => {
    event.preventDefault();
    void run(async () => {
      await box(id, `/files:${asked.what}`, { method: "POST", body });
      onClose();
    });
  };
  return (
    <Dialog title={asked.what === "mkdir" ? t.files.mkdir : t.files.moveTitle(visible(asked.file.name))} onClose={onClose}>
      <form onSubmit={submit}>
        <Field label={t.files.newPath}>
          {(props) => (
            <input {...props} class="code" autocomplete="off" spellcheck={false} value={path} onInput={(e) => put(e.currentTarget.value)} />
          )}
        </Field>
        <Problem failure={failure} />
        <footer>
          <button type="button" onClick={onClose}>
            {t.common.cancel}
          </button>
          <button type="submit" class="primary" disabled={busy}>
            {asked.what === "mkdir" ? t.files.make : t.files.move}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

function Where({
  dir,
  go,
  upload,
  mkdir,
}: {
  dir: string;
  go: (dir: string) => void;
  upload: (files: Chosen[]) => void;
  mkdir: () => void;
}): JSX.Element {
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
      <button type="button" onClick={mkdir}>
        {t.files.mkdir}
      </button>
      <Choose label={t.files.uploadTree} directory upload={upload} />
      <Choose label={t.files.upload} upload={upload} />
    </form>
  );
}

/** Choose is a button with which files are chosen, or a directory with all that is in it. */
function Choose({ label, directory, upload }: { label: string; directory?: boolean; upload: (files: Chosen[]) => void }): JSX.Element {
  return (
    <label class={directory ? "button" : "button primary"}>
      {label}
      <input
        type="file"
        multiple
        class="unseen"
        {...(directory ? { webkitdirectory: true } : {})}
        onChange={(e) => {
          upload(chosen(e.currentTarget.files));
          e.currentTarget.value = "";
        }}
      />
    </label>
  );
}

function Table({
  box: id,
  dir,
  page,
  go,
  ask: question,
}: {
  box: string;
  dir: string;
  page: FilePage;
  go: (dir: string) => void;
  ask: (asked: Asked) => void;
}): JSX.Element {
  const c = t.files.columns;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={t.files.title}>
      <table>
        <thead>
          <tr>
            {[c.name, c.size, c.changed, c.mode, c.owner, c.actions].map((text) => (
              <th key={text} scope="col">
                {text}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {page.files.slice(0, most).map((f) => (
            <tr key={f.path_base64 ?? f.path}>
              <td>
                {f.type === "directory" ? (
                  <button type="button" class="link code" onClick={() => go(join(dir, f.name))}>
                    <bdi>{visible(f.name)}/</bdi>
                  </button>
                ) : (
                  <span class="code">
                    <bdi>{visible(f.target === null ? f.name : `${f.name} → ${f.target}`)}</bdi>
                  </span>
                )}
              </td>
              <td>{f.type === "file" ? bytes(f.size) : ""}</td>
              <td>{time(f.modified_at)}</td>
              <td class="code">{f.mode}</td>
              <td>
                <bdi>{visible(f.owner ?? String(f.uid))}</bdi>
              </td>
              <td>{f.path_base64 === undefined && <Acts box={id} file={f} ask={question} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {(page.files.length > most || page.next_page_token !== null) && <p class="quiet">{t.files.cut(most)}</p>}
    </div>
  );
}

/** Acts is what can be done with a file. One whose path is not UTF-8 can't be named. */
function Acts({ box: id, file: f, ask: question }: { box: string; file: FileInfo; ask: (asked: Asked) => void }): JSX.Element {
  const [name, tree] = [visible(f.name), f.type === "directory"];
  return (
    <span class="actions">
      {["directory", "file", "symlink"].includes(f.type) && (
        <a
          class="button small"
          href={boxPath(id, `/files?path=${encodeURIComponent(f.path)}${tree ? "&archive=tar" : ""}`)}
          download={tree ? `${f.name}.tar` : f.name}
          aria-label={t.boxes.of(t.files.download, name)}
        >
          {t.files.download}
        </a>
      )}
      <button type="button" class="small" aria-label={t.boxes.of(t.files.move, name)} onClick={() => question({ what: "move", file: f })}>
        {t.files.move}
      </button>
      <button
        type="button"
        class="small danger"
        aria-label={t.boxes.of(t.common.remove, name)}
        onClick={() => question({ what: "remove", file: f })}
      >
        {t.common.remove}
      </button>
    </span>
  );
}

/** list lists a directory, directories first. */
async function list(id: string, dir: string, background: boolean): Promise<FilePage> {
  const page = await box<FilePage>(id, `/files:list?path=${encodeURIComponent(dir)}&page_size=10000`, { background });
  const rank = (f: FileInfo) => Number(f.type !== "directory");
  page.files.sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
  return page;
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
