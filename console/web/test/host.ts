/** A home with a small image, and a daemon on it, for the tests. */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** The top of the project. */
export const project = fileURLToPath(new URL("../../../", import.meta.url));

const program = join(project, "build/sandbox");

/** Host is a home of its own. */
export class Host {
  readonly #outer = mkdtempSync(join(tmpdir(), "c"));
  readonly home = join(this.#outer, "home");
  readonly #env = { ...process.env, HOME: this.home, SANDBOX_HOME: this.home };
  #daemon: ChildProcess | null = null;
  #port = 0;

  /** Makes the image "default" of busybox. */
  constructor() {
    const rootfs = join(this.#outer, "rootfs");
    for (const name of ["bin", "sbin", "usr/bin", "usr/sbin", "etc", "dev", "proc", "sys", "run", "tmp", "root"])
      mkdirSync(join(rootfs, name), { recursive: true });
    copyFileSync("/bin/busybox", join(rootfs, "bin/busybox")); // of Debian's busybox-static
    for (const applet of execFileSync("/bin/busybox", ["--list-full"], { encoding: "utf8" }).split("\n")) {
      if (applet && applet !== "bin/busybox") symlinkSync("/bin/busybox", join(rootfs, applet));
    }
    writeFileSync(join(rootfs, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n");
    this.run("--local", "images", "import", "default", rootfs);
  }

  /** The address of the daemon, the same after a restart. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Runs the command line on this home, and returns what it prints. */
  run(...args: string[]): string {
    return execFileSync(program, args, { env: this.#env, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  }

  /** Returns a new link to sign in: as the user of the socket, or with the rights of a key. */
  link(key?: string): string {
    if (!key) return this.run("console", "--no-open").trim();
    const env = { ...this.#env, SANDBOX_REST_URL: this.url, SANDBOX_API_KEY: key };
    return execFileSync(program, ["console", "--no-open"], { env, encoding: "utf8" }).trim();
  }

  /** Starts the daemon, and returns when it is ready. */
  async start(): Promise<void> {
    this.#port ||= await free();
    const daemon = spawn(program, ["serve", "--listen", `127.0.0.1:${this.#port}`], {
      env: this.#env,
      stdio: ["ignore", "ignore", "pipe"],
    });
    const said: string[] = [];
    await new Promise<void>((resolve, reject) => {
      createInterface(daemon.stderr).on("line", (line) => {
        said.push(line);
        if (line.startsWith("sandbox: ready on")) resolve();
      });
      daemon.once("exit", () => reject(new Error(`the daemon ended: ${said.join("\n")}`)));
    });
    this.#daemon = daemon;
  }

  /** Ends the daemon. Its boxes go on. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    if (!this.#daemon) return;
    this.#daemon.kill(signal);
    await once(this.#daemon, "exit");
    this.#daemon = null;
  }

  /** Ends all of it, its boxes too. */
  async leave(): Promise<void> {
    await this.stop();
    const ids = this.run("--local", "ls", "-a", "--format", "{{.ID}}").split("\n").filter(Boolean);
    if (ids.length) this.run("--local", "rm", "-f", ...ids);
    rmSync(this.#outer, { recursive: true, force: true });
  }
}

/** free returns a port that nobody listens on. */
async function free(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
