import type { ImageStage, Port, Volume } from "./contract.js";

/** What a box can be made with. The names are those of the contract's documents. */
export interface CreateOptions {
  /** 1 to 128 letters, digits, "_", "." or "-". */
  name?: string;
  /** A directory with a root file system, in place of an image. It is used read-only. */
  rootfs_path?: string;
  /** At most the host's; 2 if left out. */
  cpus?: number;
  /** At most the host's; 512 if left out. */
  memory_mib?: number;
  /** In GB of 1024 MiB. */
  disk_size_gb?: number;
  /** Absolute path in the box. */
  working_dir?: string;
  env?: Record<string, string>;
  volumes?: (Omit<Volume, "read_only"> & { read_only?: boolean })[];
  /** A port of the host that is 0 or left out is chosen. */
  ports?: { guest_port: number; host_port?: number; protocol?: Port["protocol"]; host_ip?: string }[];
  /** "Isolated" if left out. */
  network?: "Isolated" | "None";
  /** Whether the box goes when it stops, and with what made it; true if left out. */
  auto_remove?: boolean;
  /** How long the box lives from each start and resume, at most a year; without end if left out. */
  ttl_seconds?: number;
  /** How long nobody may use it: no command, no stream, no file and no connection; without end if left out. */
  idle_seconds?: number;
  /** What becomes of it then; "stop" if left out. */
  on_expiry?: "stop" | "pause" | "remove";
  /** What needs the box to run starts it where it is stopped, and resumes it where it is paused; false if left out. */
  auto_start?: boolean;
  /** Which system calls it has: "strict" is what Python, bash and compilers need; "default" if left out. */
  seccomp?: "default" | "strict";
  /** Run where the host gives the user no cgroups to enforce limits with, too; false if left out. */
  allow_unenforced_limits?: boolean;
  /** The main command, which is started with the box, each time: its arguments, or "image" for the image's own. */
  command?: "image" | readonly string[];
  /** When it is started again: "always", "on-failure", "on-failure:N" or "no"; "no" if left out. */
  restart?: string;
  /** Whether the box stops when the command has ended for good; false if left out. */
  stop_with_command?: boolean;
  /** How it is found out whether the command works. What is left out is as the image says. */
  healthcheck?: HealthCheckOptions;
}

/** How it is found out whether a main command works. */
export interface HealthCheckOptions {
  /** "CMD" and a command, "CMD-SHELL" and a line for /bin/sh -c, or "NONE" alone. */
  test?: readonly string[];
  /** Between the end of a check and the next one. */
  interval_ms?: number;
  /** Of one check, which has failed then. */
  timeout_ms?: number;
  /** From the start of the command; until then no failure counts. */
  start_period_ms?: number;
  /** As interval_ms, within the start period. */
  start_interval_ms?: number;
  /** How many checks fail one after another until the command is unhealthy. */
  retries?: number;
}

/** What clones of a box are, and in what they differ from it. */
export interface CloneOptions {
  /** How many, 1 to 100; 1 if left out. */
  n?: number;
  /** The names are this with -1, -2 and so on behind it; without it they have none. */
  name_prefix?: string;
  /** A snapshot of the box; one is taken now if it is left out. */
  snapshot?: string;
  /** What they have otherwise. */
  options?: Omit<CreateOptions, "name" | "rootfs_path">;
}

/** Which part of what a box used over time is wanted. */
export interface SeriesOptions {
  /** A Date, RFC 3339, or how long ago, such as "90m"; an hour ago if left out. */
  from?: Date | string;
  /** Now if left out. */
  to?: Date | string;
  /** As short as the server has it if left out. */
  step_seconds?: number;
}

/** What can be changed of a box. What is left out stays as it is; null asks for the default. */
export interface BoxChanges {
  /** Counts from now, and from each start and resume; null for no end. */
  ttl_seconds?: number | null;
  /** How long nobody may use it; null for no end. */
  idle_seconds?: number | null;
  on_expiry?: "stop" | "pause" | "remove" | null;
  auto_start?: boolean | null;
}

/** How a command runs. */
export interface ExecOptions {
  env?: Record<string, string>;
  /** Absolute path in the box. */
  working_dir?: string;
  /** A name or a number, and ":group" if wanted. */
  user?: string;
  /** When it has passed, the command and all that it started are ended. */
  timeout_ms?: number;
  /** The whole input of the command. */
  stdin?: string | Uint8Array;
  /** Leaves the input open for `stdin.write`. */
  stdin_open?: boolean;
  /** Runs the command on a terminal; its output is then one stream, stdout. */
  tty?: boolean;
  /** The size of the terminal in characters; 80 and 24 if left out. */
  cols?: number;
  rows?: number;
}

/** A command with its arguments: as parameters, or as an array with options behind it. */
export type Command = [...argv: string[]] | [argv: readonly string[], options?: ExecOptions];

/** How far a copy, a pull or an import has come. */
export interface Progress {
  stage: "copy" | ImageStage;
  /** Which layer, from 1, of how many; 1 of 1 of a copy. */
  part: number;
  parts: number;
  /** Bytes. */
  done: number;
  /** Bytes, or null if that is not known. */
  total: number | null;
}

/** Where a server is, and how it knows the caller. */
export interface RemoteOptions {
  /** http://HOST:PORT or https://HOST; on Node.js unix:///PATH, too. */
  url: string | URL;
  /** Every server but a Unix socket wants one. */
  apiKey?: string;
  /** The route prefix of a self-hosted server that has one. */
  pathPrefix?: string;
}
