/** Shells in boxes. They live beside the pages: whoever leaves a terminal's page finds it again as it was. */
import { signal, type Signal } from "@preact/signals";
import { FitAddon } from "@xterm/addon-fit";
import { Terminal, type ITheme } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { box, boxPath, failureOf } from "./api/client.js";
import type { ExecInfo } from "./api/documents.js";
import "./sheet.js";
import { t } from "./texts.js";
import { color, isDark } from "./theme.js";
import { copy } from "./ui/parts.js";

/** The first state is that of a shell to which there is no connection yet, the last two are the end. */
export type ShellState = "connecting" | "open" | "lost" | "taken" | "ended" | "failed";

/** The open shells of all boxes. */
export const shells: Signal<Shell[]> = signal([]);

// More output than this may not wait to be drawn: the rest stays on the server, which makes the command wait.
const [full, low, retry] = [1 << 20, 128 << 10, 1000];
const store = "sandbox-terminals";

/** Shell is a terminal of this page and the shell in a box that it shows. */
export class Shell {
  readonly term = new Terminal({
    fontFamily: "ui-monospace, 'DejaVu Sans Mono', monospace",
    fontSize: 14,
    scrollback: 10000,
    theme: themeOf(),
    linkHandler: { activate: () => {} },
    minimumContrastRatio: 4.5,
  });
  readonly state = signal<ShellState>("connecting");
  readonly note = signal("");
  readonly place = document.createElement("div");
  readonly #fit = new FitAddon();
  #socket: WebSocket | null = null;
  #had = 0; // bytes of output that were shown
  #waiting = 0; // bytes that wait to be drawn
  #held = false; // the rest of the output waits on the server
  #timer = 0;
  #closed = false;

  constructor(
    readonly box: string,
    readonly number: number,
    public exec = "",
  ) {
    this.place.className = "terminal-place";
    this.term.loadAddon(this.#fit);
    this.term.onData((text) => this.#send(new TextEncoder().encode(text)));
    this.term.onBinary((text) => this.#send(Uint8Array.from(text, (c) => c.charCodeAt(0))));
    this.term.onResize(({ cols, rows }) => this.#send(JSON.stringify({ type: "resize", cols, rows })));
    this.term.attachCustomKeyEventHandler((event) => this.#key(event));
  }

  /** Shows the terminal in a part of the page. */
  show(parent: HTMLElement): () => void {
    parent.append(this.place);
    if (!this.term.element) this.term.open(this.place);
    const observer = new ResizeObserver(() => this.#fit.fit());
    observer.observe(parent);
    this.#fit.fit();
    if (!this.#socket && this.state.value === "connecting")
      void (this.exec ? this.reconnect() : this.#connect(`/attach?cols=${this.term.cols}&rows=${this.term.rows}`, false));
    this.term.focus();
    return () => {
      observer.disconnect();
      this.place.remove();
    };
  }

  /** Ends the shell and forgets it. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#socket?.close();
    this.term.dispose();
    shells.value = shells.value.filter((shell) => shell !== this);
    if (this.exec && this.state.value === "lost") box(this.box, `/exec/${this.exec}:cancel`, { method: "POST" }).catch(() => {});
  }

  /** Leaves the shell running, for the page that comes after this one. */
  leave(): void {
    this.#send(JSON.stringify({ type: "detach", stdout: this.#had }));
  }

  /** Connects again to the shell, if it still runs. */
  async reconnect(): Promise<void> {
    clearTimeout(this.#timer);
    try {
      const exec = await box<ExecInfo>(this.box, `/exec/${this.exec}`);
      if (exec.status === "running" || exec.stdout_bytes! > this.#had)
        this.#connect(`/exec/${this.exec}/attach?after_stdout=${this.#had}`, true);
      else this.#end("ended", t.terminal.ended(String(exec.exit_code)));
    } catch (thrown) {
      const { status, message } = failureOf(thrown);
      if (status === 404 || status === 409) this.#end("failed", message);
      else this.#later();
    }
  }

  #connect(below: string, tagged: boolean): void {
    this.#socket?.close(); // the server has one client at a time, and refuses the next while this one is there
    const socket = new WebSocket(
      Object.assign(new URL(boxPath(this.box, below), location.href), { protocol: location.protocol.replace("http", "ws") }),
      "sandbox.v1",
    );
    this.#socket = socket;
    this.#held = false;
    let opened = false;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => (opened = true);
    socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      if (socket !== this.#socket) return; // this output comes again, on the next socket
      if (typeof data === "string") this.#told(JSON.parse(data));
      else this.#print(new Uint8Array(data, tagged ? 1 : 0));
    };
    socket.onclose = () => {
      if (socket !== this.#socket || this.#closed || this.#held || this.state.value === "ended" || this.state.value === "failed") return;
      if (tagged && !opened) this.state.value = "taken";
      else if (!this.exec) void this.#refused();
      else this.#later();
    };
  }

  /** Finds out why there is no shell: the browser does not tell. */
  async #refused(): Promise<void> {
    const failure = await box(this.box).then(() => null, failureOf);
    this.#end("failed", failure?.message ?? t.terminal.failed);
  }

  #later(): void {
    this.state.value = "lost";
    this.#timer = window.setTimeout(() => void this.reconnect(), retry);
  }

  #end(state: ShellState, note: string): void {
    this.state.value = state;
    this.note.value = note;
  }

  #told(said: { type: string; exec_id?: string; exit_code?: number | null; message?: string }): void {
    if (said.type === "ready") {
      this.exec = said.exec_id ?? this.exec;
      this.state.value = "open";
      this.#send(JSON.stringify({ type: "resize", cols: this.term.cols, rows: this.term.rows }));
    } else if (said.type === "exit") this.#end("ended", t.terminal.ended(String(said.exit_code)));
    else if (said.type === "error") this.#end("failed", said.message ?? t.terminal.failed);
  }

  #print(bytes: Uint8Array): void {
    if (this.#held) return;
    this.#had += bytes.length;
    this.#waiting += bytes.length;
    this.term.write(bytes, () => {
      const before = this.#waiting;
      this.#waiting -= bytes.length;
      if (this.#held && before >= low && this.#waiting < low) void this.reconnect(); // once, however many pieces still wait
    });
    if (this.#waiting < full) return;
    this.leave();
    this.#held = true;
  }

  #send(data: string | Uint8Array<ArrayBuffer>): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(data);
  }

  /** Ctrl+Shift+C copies what is selected, and Shift+F6 leaves the terminal, which takes all other keys. Ctrl+Shift+V is the browser's own. */
  #key(event: KeyboardEvent): boolean {
    const copies = event.ctrlKey && event.shiftKey && event.code === "KeyC";
    const leaves = event.shiftKey && event.code === "F6";
    if (!copies && !leaves) return true;
    event.preventDefault();
    if (event.type === "keydown" && copies) void copy(this.term.getSelection());
    if (event.type === "keydown" && leaves) document.querySelector<HTMLElement>("[role=tab][aria-selected=true]")?.focus();
    return false;
  }
}

function themeOf(): ITheme {
  return { background: color("terminal"), foreground: color("text"), cursor: color("accent"), selectionBackground: `${color("accent")}55` };
}

isDark.subscribe(() =>
  queueMicrotask(() => {
    for (const shell of shells.value) shell.term.options.theme = themeOf();
  }),
);

/** open opens a terminal in a box. */
export function open(box: string, exec = ""): Shell {
  const shell = new Shell(box, Math.max(0, ...shells.value.filter((s) => s.box === box).map((s) => s.number)) + 1, exec);
  shells.value = [...shells.value, shell];
  return shell;
}

// A reload of the page finds its shells again.
addEventListener("pagehide", () => {
  const left = shells.value.filter((shell) => shell.exec && shell.state.value !== "ended" && shell.state.value !== "failed");
  for (const shell of left) shell.leave();
  sessionStorage.setItem(store, JSON.stringify(left.map(({ box, exec }) => [box, exec])));
});
for (const [box, exec] of JSON.parse(sessionStorage.getItem(store) ?? "[]") as [string, string][]) open(box, exec);
sessionStorage.removeItem(store);
