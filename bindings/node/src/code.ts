import { ResourceExhaustedError } from "./contract.js";
import type { CodeContext, CodeError, CodeEvent, CodeResult, CodeStatus, Language } from "./contract.js";
import { maxResult } from "./execution.js";
import { Feed, type Source } from "./feed.js";

/** How code runs. */
export interface CodeOptions {
  /** "python" if left out. */
  language?: Language;
  /** The id of a context; the one that the language has of its own, which is made when it is needed, if left out. */
  context?: string;
  /** Variables that only this run sees. */
  env?: Record<string, string>;
  /** When it has passed, the code is interrupted. */
  timeout_ms?: number;
}

/** What a context can be made with. */
export interface ContextOptions {
  /** "python" if left out. */
  language?: Language;
  /** Absolute path in the box. */
  working_dir?: string;
  /** A name or a number, and ":group" if wanted. */
  user?: string;
  env?: Record<string, string>;
}

/** What came of code that ran to its end. */
export interface CodeOutcome {
  context_id: string;
  /** From 1 on, since the context was made or restarted. */
  execution_count: number;
  /** Whether the context was made for this run. */
  fresh: boolean;
  /** The value of the last expression as text, or null if it has none. */
  text: string | null;
  stdout: string;
  stderr: string;
  /** What the code has shown, in its order. */
  results: CodeResult[];
  /** Why it ended, or null if it succeeded. */
  error: CodeError | null;
  status: CodeStatus;
  duration_ms: number;
  /** Whether the process of the context has ended, and the context has begun anew: what code had defined is lost. */
  restarted: boolean;
}

/**
 * Code that runs in a context of a box. `for await` reads its events as they come: the first one is of the type
 * "start", the last one of the type "end". Code that prints waits for a slow reader. `await using`, or `close`,
 * interrupts code that still runs; leaving a loop does not.
 */
export class CodeRun extends Feed<CodeEvent> {
  #start: CodeEvent | undefined;
  #end: CodeEvent | undefined;

  constructor(source: Source<CodeEvent>) {
    super("run", source);
  }

  override async read(): Promise<CodeEvent | null> {
    const event = await super.read();
    if (event?.type === "start") this.#start = event;
    if (event?.type === "end") this.#end = event;
    return event;
  }

  /** Waits for the end, and returns all that was not read before. */
  async result(): Promise<CodeOutcome> {
    const printed = { stdout: "", stderr: "" };
    const results: CodeResult[] = [];
    let error: CodeError | null = null;
    let size = 0;
    for await (const event of this) {
      if (event.type === "stdout" || event.type === "stderr") printed[event.type] += event.text;
      if (event.result) results.push(event.result);
      error = event.error ?? error;
      size += event.result ? JSON.stringify(event.result).length : event.text?.length ?? 0;
      if (size > maxResult) throw new ResourceExhaustedError(`the code printed and showed more than ${maxResult >> 20} MiB: read it with startCode`);
    }
    const { context_id = "", execution_count = 0, fresh = false } = this.#start ?? {};
    const { status = "lost", duration_ms, restarted = false } = this.#end ?? {};
    const text = results.find((result) => result.is_main)?.text ?? null;
    return { context_id, execution_count, fresh, text, ...printed, results, error, status, duration_ms: duration_ms ?? 0, restarted };
  }
}

/** The contexts of a box: processes of a language, which keep what code defines for the next run. */
export interface Contexts {
  /** All of them, newest first. */
  list(): Promise<CodeContext[]>;
  create(options?: ContextOptions): Promise<CodeContext>;
  /** Interrupts the code that a context runs, as Ctrl-C does. Between two runs nothing happens. */
  interrupt(id: string): Promise<CodeContext>;
  /** Ends the processes of a context and starts it anew, with nothing of what code has defined. */
  restart(id: string): Promise<CodeContext>;
  /** Ends a context with all of its processes. */
  remove(id: string): Promise<void>;
}
