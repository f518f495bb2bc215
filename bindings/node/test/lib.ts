/** What tests have in common: a home with a small image, and a server on it. */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** The top of the package, and of the project. */
export const top = fileURLToPath(new URL("../../", import.meta.url));
export const project = join(top, "../..");

const busybox = "/bin/busybox"; // of Debian's busybox-static

/** rootfs makes a root file system of busybox. */
export function rootfs(where: string): string {
  const directory = join(where, "rootfs");
  for (const name of ["bin", "sbin", "usr/bin", "usr/sbin", "etc", "dev", "proc", "sys", "run", "tmp", "root"]) mkdirSync(join(directory, name), { recursive: true });
  copyFileSync(busybox, join(directory, busybox));
  for (const applet of execFileSync(busybox, ["--list-full"], { encoding: "utf8" }).split("\n")) {
    if (applet && `/${applet}` !== busybox) symlinkSync(busybox, join(directory, applet));
  }
  writeFileSync(join(directory, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/:/bin/sh\n");
  return directory;
}

/** home makes a home with the image "default", which leave removes, and sets it in the environment, without the profiles of who runs the tests. */
export function home(): { directory: string; rootfs: string; leave: () => Promise<void> } {
  const outer = mkdtempSync(join(tmpdir(), "n"));
  const directory = join(outer, "home");
  process.env["SANDBOX_HOME"] = process.env["HOME"] = directory;
  delete process.env["SANDBOX_REST_URL"];
  const files = rootfs(outer);
  execFileSync(join(project, "build/sandbox"), ["--local", "images", "import", "default", files], { stdio: ["ignore", "ignore", "inherit"] });
  const leave = async () => {
    await Promise.all([...servers].map((server) => server.stop())); // those of tests that failed
    rmSync(outer, { recursive: true, force: true });
  };
  return { directory, rootfs: files, leave };
}

/** A server of the test's own. */
export interface Server {
  url: string;
  apiKey: string;
  process: ChildProcess;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** The servers that run. */
const servers = new Set<Server>();

/** serve starts a server on a home, and returns when it is ready. */
export async function serve(directory: string, ...flags: string[]): Promise<Server> {
  const env = { ...process.env, HOME: directory, SANDBOX_HOME: directory };
  const server = spawn(join(project, "build/sandbox"), ["serve", "--listen", "127.0.0.1:0", ...flags], { env, stdio: ["ignore", "ignore", "pipe"] });
  const said: string[] = [];
  const url = await new Promise<string>((resolve, reject) => {
    createInterface(server.stderr).on("line", (line) => {
      said.push(line);
      const ready = /^sandbox: ready on (http:\S+)/.exec(line);
      if (ready) resolve(ready[1]!);
    });
    server.once("exit", () => reject(new Error(`the server ended: ${said.join("\n")}`)));
  });
  const profile = readFileSync(join(directory, ".sandbox/credentials.toml"), "utf8");
  const running: Server = {
    url, apiKey: /api_key = "(.*)"/.exec(profile)![1]!, process: server,
    async stop(signal = "SIGTERM") {
      if (!servers.delete(running)) return;
      server.kill(signal);
      await once(server, "exit");
    },
  };
  servers.add(running);
  return running;
}

/** program runs a program that lies beside the tests. */
export function program(file: string, env: NodeJS.ProcessEnv = {}): ChildProcess {
  return spawn(process.execPath, [join(dirname(fileURLToPath(import.meta.url)), file)], { env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "inherit"] });
}
