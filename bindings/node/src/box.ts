import { codeOptions, command, text } from "./check.js";
import type { CodeOptions, CodeOutcome, CodeRun, Contexts } from "./code.js";
import type { BoxInfo, BoxMetrics, BoxSeries, Change, ExecInfo, Share, Snapshot } from "./contract.js";
import type { Execution, Result } from "./execution.js";
import type { Files } from "./files.js";
import type { BoxChanges, CloneOptions, Command, ExecOptions, SeriesOptions } from "./options.js";

/** A connection to a port of a box: a `net.Socket` of Node.js. */
export interface Connection {}

/** The size of a terminal, and the shell on it. */
export interface TerminalOptions extends Pick<ExecOptions, "env" | "working_dir" | "user" | "cols" | "rows"> {
  /** /bin/bash, or /bin/sh where there is none, if left out. */
  shell?: string;
}

const anyShell = ["/bin/sh", "-c", "[ -x /bin/bash ] && exec /bin/bash; exec /bin/sh"];

/** A box. `await using`, or `close`, removes it if this program made it to be removed. */
export abstract class Box implements AsyncDisposable {
  constructor(readonly id: string) {}

  abstract readonly files: Files;
  abstract readonly contexts: Contexts;
  abstract info(): Promise<BoxInfo>;
  abstract metrics(): Promise<BoxMetrics>;
  /** What the box of a server used over time: of the last hour if nothing else is said. */
  abstract metricsSeries(options?: SeriesOptions): Promise<BoxSeries>;
  /** Starts a stopped box again. Its disk is as it was. */
  abstract start(): Promise<void>;
  /** Stops the box: SIGTERM to all its processes, SIGKILL 10 s later. It is gone then if it has auto_remove. */
  abstract stop(): Promise<void>;
  /** Has all processes of the box stand still, until resume. With `reclaim`, the kernel takes back what it can of its memory. */
  abstract pause(options?: { reclaim?: boolean }): Promise<void>;
  /** Lets the processes of a paused box go on. */
  abstract resume(): Promise<void>;
  /** Changes how long the box lives. */
  abstract update(changes: BoxChanges): Promise<void>;
  /**
   * Makes an image of the disk as it is now. The name must be free; without one it is made up. A box that runs stands
   * still while its disk is copied, and `paused_ms` says for how long.
   */
  abstract snapshot(name?: string): Promise<Snapshot>;
  /**
   * Makes boxes that are like this one, with the files of a snapshot of it, or with those that it has now. Ports of the
   * host are chosen anew. If one can't be made, none is.
   */
  abstract clone(options?: CloneOptions): Promise<Box[]>;
  /** Gives the box the disk of a snapshot of it. The commands of one that is up end, and it is started again. */
  abstract rollback(snapshot: string): Promise<void>;
  /**
   * What has changed on the disk since the box was made, or since a snapshot of it, in the order of the paths. A directory
   * that was removed is one change; of a new one each file is. They are asked for when they are needed, up to 10,000 at once.
   */
  abstract diff(since?: string): AsyncIterable<Change>;
  /** Removes the box and its disk; a running one, too, unless `force` is false. */
  abstract remove(options?: { force?: boolean }): Promise<void>;
  /** The last 1,024 commands, newest first. */
  abstract execs(): Promise<ExecInfo[]>;
  /** Takes over a command that no longer has a reader, by its id. */
  abstract attach(execId: string): Promise<Execution>;
  /** Ends the use of this object, and removes the box if this program made it with auto_remove. */
  abstract close(): Promise<void>;
  /**
   * Connects to a program that listens on a TCP port of the box, published or not. The socket is the caller's, and ends
   * with the box too. Node.js only. Rejects with NetworkError if nothing listens there.
   */
  abstract connect(port: number): Promise<Connection>;
  /**
   * Makes a link to a port of a box of a server, for people without a key. It lasts an hour if `expires_in_seconds` is
   * left out, 30 days at most.
   */
  abstract share(port: number, options?: { expires_in_seconds?: number }): Promise<Share>;
  protected abstract begin(argv: string[], options: ExecOptions): Promise<Execution>;
  protected abstract beginCode(code: string, options: CodeOptions): Promise<CodeRun>;

  /** Starts a command. */
  async exec(...given: Command): Promise<Execution> {
    const { argv, options } = command(given);
    return this.begin(argv, options);
  }

  /** Runs a command to its end, and returns what it printed. */
  async run(...given: Command): Promise<Result> {
    await using execution = await this.exec(...given);
    return await execution.result();
  }

  /** Starts a shell on a terminal. */
  async terminal({ shell, ...options }: TerminalOptions = {}): Promise<Execution> {
    return this.exec(shell === undefined ? anyShell : [text("shell", shell)], { ...options, tty: true });
  }

  /**
   * Runs code in a context, and resolves when it has begun: runs in the same context wait for each other. The box
   * needs the language: python3, node or bash.
   */
  async startCode(code: string, options: CodeOptions = {}): Promise<CodeRun> {
    return this.beginCode(text("code", code), codeOptions(options));
  }

  /** Runs code to its end. Code that fails, or runs out of its time, is told by the status and the error of what it returns. */
  async runCode(code: string, options?: CodeOptions): Promise<CodeOutcome> {
    await using run = await this.startCode(code, options);
    return await run.result();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
