/** What is the same in process and on a server. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { Socket } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Runtime, SandboxError, type Box, type Execution } from "libsandbox";
import { home, serve, type Server } from "./lib.js";

const host = home();
let server: Server;
before(async () => { server = await serve(host.directory); });
after(async () => { await server.stop(); await host.leave(); });

const surfaces: [string, () => Promise<Runtime>][] = [
  ["in process", () => Runtime.local()],
  ["on a server", () => Runtime.remote(server)],
  ["on a socket", () => Runtime.remote({ url: `unix://${host.directory}/sandbox.sock` })],
];

const text = (data: Uint8Array) => new TextDecoder().decode(data);
const failsAs = (name: string, message = /./) => (failure: unknown) => {
  assert.ok(failure instanceof SandboxError, String(failure));
  assert.equal(failure.name, name);
  assert.match(failure.message, message);
  return true;
};

/** all reads a command's output to the end. */
async function all(execution: Execution): Promise<Record<"stdout" | "stderr", string>> {
  const read = { stdout: "", stderr: "" };
  for await (const { stream, data } of execution) read[stream] += text(data);
  return read;
}

for (const [name, open] of surfaces) {
  describe(name, () => {
    let runtime: Runtime;
    let box: Box;
    before(async () => {
      runtime = await open();
      box = await runtime.create("default", { network: "None", env: { A: "box" }, working_dir: "/tmp", memory_mib: 64 });
    });
    after(async () => {
      await runtime.close();
      assert.deepEqual(await withRuntime((r) => r.list()), []);
    });

    test("a box has a document, metrics and a place in the list", async () => {
      const info = await box.info();
      assert.equal(info.id, box.id);
      assert.equal(info.status, "running");
      assert.equal(info.memory_mib, 64);
      assert.equal(info.auto_remove, true);
      assert.deepEqual(info.env, { A: "box" });
      assert.deepEqual((await runtime.list()).map((b) => b.id), [box.id]);
      assert.ok((await box.metrics()).memory_bytes! > 0);
      assert.equal((await runtime.metrics()).num_running_boxes, 1);
    });

    test("run returns all output and the exit code", async () => {
      const result = await box.run(["sh", "-c", "pwd; echo $A $B; cat; printf '\\377' >&2; exit 3"], { env: { B: "exec" }, stdin: "whole input" });
      assert.equal(result.stdout, "/tmp\nbox exec\nwhole input");
      assert.equal(result.exit_code, 3);
      assert.equal(result.signal, null);
      assert.deepEqual([...result.stderr_bytes], [0xff]);
      assert.equal(result.stderr, "\ufffd");
    });

    test("a signal's number is told", async () => {
      const result = await box.run("sh", "-c", "kill -9 $$");
      assert.deepEqual([result.exit_code, result.signal], [-9, 9]);
    });

    test("a command that can't be started is an ExecutionError", async () => {
      await assert.rejects(box.run("no-such"), (failure: SandboxError) => failsAs("ExecutionError", /no-such/)(failure) && failure.exit_code === 127);
      await assert.rejects(box.run("/etc/passwd"), (failure: SandboxError) => failsAs("ExecutionError")(failure) && failure.exit_code === 126);
    });

    test("a timeout is a TimeoutError", async () => {
      await assert.rejects(box.run(["sleep", "100"], { timeout_ms: 100 }), failsAs("TimeoutError"));
    });

    test("output is read as it comes, and input written meanwhile", async () => {
      await using cat = await box.exec(["cat"], { stdin_open: true });
      const pieces = cat[Symbol.asyncIterator]();
      for (const word of ["one", "two"]) {
        await cat.stdin.write(word);
        const { value } = await pieces.next();
        assert.deepEqual([value!.stream, text(value!.data)], ["stdout", word]);
      }
      await cat.stdin.close();
      assert.equal((await pieces.next()).done, true);
      assert.deepEqual(await cat.wait(), { exit_code: 0, signal: null });
      assert.equal((await cat.info()).status, "succeeded");
    });

    test("both streams come whole", async () => {
      await using seq = await box.exec("sh", "-c", "seq 100000; seq 50000 >&2");
      const { stdout, stderr } = await all(seq);
      assert.deepEqual([stdout.length, stderr.length], [588895, 288894]);
      assert.ok(stdout.endsWith("\n100000\n"));
    });

    test("what a child in the background holds open is not waited for", async () => {
      const begun = performance.now();
      const result = await box.run("sh", "-c", "sleep 30 & echo now");
      assert.equal(result.stdout, "now\n");
      assert.ok(performance.now() - begun < 10_000);
    });

    test("kill ends a command, and signal reaches it", async () => {
      await using sleep = await box.exec("sleep", "100");
      await sleep.kill();
      await assert.rejects(sleep.wait(), failsAs("CanceledError"));
      await using trap = await box.exec("sh", "-c", "trap 'echo hup; exit 7' HUP; echo ready; while :; do sleep 0.01; done");
      const pieces = trap[Symbol.asyncIterator]();
      assert.equal(text((await pieces.next()).value!.data), "ready\n");
      await trap.signal("HUP");
      assert.equal((await trap.result()).stdout, "hup\n");
      assert.equal((await trap.wait()).exit_code, 7);
    });

    test("a terminal has a size, which changes", async () => {
      await using shell = await box.terminal({ cols: 91, rows: 17 });
      await shell.stdin.write("stty size\n");
      let seen = "";
      for await (const { stream, data } of shell) {
        assert.equal(stream, "stdout");
        seen += text(data);
        if (seen.includes("17 91") && !seen.includes("resized")) {
          await shell.resize(92, 18);
          await shell.stdin.write("echo resized; stty size; exit\n");
          seen += "resized";
        }
      }
      assert.match(seen, /18 92/);
    });

    test("detach leaves a command to attach", async () => {
      const first = await box.exec("sh", "-c", "while [ ! -e /tmp/go ]; do sleep 0.01; done; echo again");
      await first.detach();
      await using second = await box.attach(first.id);
      await box.files.writeFile("/tmp/go", "");
      assert.equal((await all(second)).stdout, "again\n");
      assert.ok((await box.execs()).some((e) => e.id === first.id));
    });

    test("ten commands are waited for at once, and files meanwhile", async () => {
      const commands = await Promise.all(Array.from({ length: 10 }, () => box.exec(["cat"], { stdin_open: true })));
      const waits = commands.map((c) => c.wait());
      assert.equal(readFileSync("/proc/self/comm", "utf8").length > 0, true);
      assert.equal(text(await readBack(box, "while they wait")), "while they wait");
      for (const c of commands) await c.stdin.close();
      assert.deepEqual((await Promise.all(waits)).map((e) => e.exit_code), Array(10).fill(0));
      await Promise.all(commands.map((c) => c.close()));
    });

    test("files are written, read and copied", async () => {
      const bytes = crypto.getRandomValues(new Uint8Array(60_000));
      await box.files.writeFile("/tmp/new/file", bytes, { mode: 0o750 });
      assert.deepEqual(new Uint8Array(await box.files.readFile("/tmp/new/file")), bytes);
      assert.equal((await box.run("stat", "-c", "%a", "/tmp/new/file")).stdout, "750\n");
      await assert.rejects(box.files.readFile("/tmp/none"), failsAs("NotFoundError"));
      await assert.rejects(box.files.readFile("/tmp"), failsAs("InvalidArgumentError"));
      const directory = mkdtempSync(join(tmpdir(), "files-"));
      try {
        writeFileSync(join(directory, "a"), "content");
        let last = 0;
        await box.files.copyIn(directory, "/tmp/copy", ({ done }) => { last = done; });
        assert.ok(last > 0);
        await box.files.copyOut("/tmp/copy", join(directory, "back"));
        assert.equal(readFileSync(join(directory, "back/a"), "utf8"), "content");
        assert.ok(statSync(join(directory, "back")).isDirectory());
      } finally {
        rmSync(directory, { recursive: true });
      }
    });

    test("files are looked at, made, moved and removed in their places", async () => {
      const { files } = box;
      const made = await files.makeDirectory("/place/deep", { mode: 0o2770 });
      assert.deepEqual([made.created, made.type, made.mode], [true, "directory", "2770"]);
      assert.equal((await files.makeDirectory("/place/deep")).created, false);
      await files.writeFile("/place/deep/data", "12345", { mode: 0o600 });
      await box.run("ln", "-s", "/nosuch", "/place/link");
      const data = await files.stat("/place/deep/data");
      assert.deepEqual([data.name, data.type, data.size, data.mode, data.owner, data.target], ["data", "file", 5, "0600", "root", null]);
      assert.deepEqual((await listed(files.list("/place"))).map((f) => f.path), ["/place/deep", "/place/link"]);
      assert.deepEqual((await listed(files.list("/place", { depth: 2 }))).map((f) => f.path), ["/place/deep", "/place/deep/data", "/place/link"]);
      assert.deepEqual([await files.exists("/place/link"), await files.exists("/nosuch")], [true, false]);
      assert.equal((await files.move("/place/deep/data", "/place/moved")).path, "/place/moved");
      await assert.rejects(files.remove("/place"), failsAs("InvalidArgumentError", /recursive/));
      assert.deepEqual(await files.remove("/place", { recursive: true }), { path: "/place", removed: 4 });
      await assert.rejects(files.stat("/place"), failsAs("NotFoundError"));
      await assert.rejects(listed(files.list("/place")), failsAs("NotFoundError"));
    });

    test("a list has more files than a page", async () => {
      await box.run("sh", "-c", "mkdir /many; cd /many; seq 10100 | xargs touch");
      assert.equal(new Set((await listed(box.files.list("/many"))).map((f) => f.name)).size, 10100);
      await box.files.remove("/many", { recursive: true });
    });

    test("the rights of a user count", async () => {
      const { files } = box;
      const user = { user: "1000" };
      await box.run("sh", "-c", "mkdir -m 777 /open; mkdir -m 700 /closed; echo secret > /closed/file");
      await files.writeFile("/open/mine", "x", user);
      assert.equal((await files.stat("/open/mine")).uid, 1000);
      assert.equal((await files.makeDirectory("/open/made", { user: "1000:7" })).gid, 7);
      await files.copyIn(host.rootfs + "/etc", "/open/tree", undefined, user);
      assert.equal((await files.stat("/open/tree/passwd")).uid, 1000);
      for (const refused of [
        () => files.readFile("/closed/file", user), () => files.writeFile("/closed/other", "x", user),
        () => files.copyOut("/closed/file", join(host.directory, "out"), undefined, user),
        () => files.stat("/closed/file", user), () => files.exists("/closed/file", user), () => listed(files.list("/closed", user)),
        () => files.makeDirectory("/closed/made", user), () => files.move("/open/mine", "/closed/mine", user),
        () => files.remove("/closed", { ...user, recursive: true }), () => files.watch("/closed", user),
      ]) await assert.rejects(refused, failsAs("PermissionDeniedError"), String(refused));
      await assert.rejects(files.stat("/", { user: "nobodyknows" }), failsAs("InvalidArgumentError"));
    });

    test("a port is connected to, and each direction ends for itself", async () => {
      await box.run("sh", "-c", "nc -ll -p 8080 -e cat </dev/null >/dev/null 2>&1 & until netstat -ltn | grep -q :8080; do :; done");
      const socket = await box.connect(8080);
      assert.ok(socket instanceof Socket);
      const sent = Buffer.alloc(1 << 20, "0123456789abcdef");
      socket.end(sent);
      const got: Buffer[] = [];
      for await (const piece of socket) got.push(piece as Buffer);
      assert.ok(Buffer.concat(got).equals(sent));
      await assert.rejects(box.connect(1), failsAs("NetworkError", /port 1 /));
      await assert.rejects(box.connect(65536), failsAs("InvalidArgumentError", /port/));
      await assert.rejects(box.connect("80" as never), failsAs("InvalidArgumentError", /port/));
    });

    test("a link leads to a port of a box of a server", async () => {
      if (name === "in process") return assert.rejects(box.share(8080), failsAs("UnsupportedError"));
      await box.run("sh", "-c", "mkdir /www; echo shared > /www/file; httpd -p 127.0.0.1:8081 -h /www");
      const share = await box.share(8081, { expires_in_seconds: 60 });
      assert.deepEqual([share.box_id, share.port], [box.id, 8081]);
      assert.equal(await (await fetch(share.url.replace(/\/?$/, "/file"))).text(), "shared\n");
      await assert.rejects(box.share(8081, { expires_in_seconds: 0 }), failsAs("InvalidArgumentError", /expires/));
    });

    test("a snapshot keeps the disk, and clones and rollbacks have it", async () => {
      await using own = await runtime.create("default", { network: "None", memory_mib: 64, cpus: 1 });
      await own.run("sh", "-c", "echo good >/file; mkdir /d");
      const good = `good-${name.length}:1`;
      const taken = await own.snapshot(good);
      assert.deepEqual([taken.name, taken.box, taken.layers.length], [good, own.id, 2]);
      await own.run("sh", "-c", "echo bad >/file; rmdir /d");
      assert.deepEqual((await listed(own.diff(good))).map(({ kind, path }) => `${kind} ${path}`), ["removed /d", "changed /file"]);
      await own.rollback(good);
      assert.equal((await own.run("cat", "/file")).stdout, "good\n");
      const clones = await own.clone({ n: 2, name_prefix: `copy-${name.length}`, snapshot: good, options: { memory_mib: 96, env: { A: "1" } } });
      assert.equal((await clones[1]!.run("sh", "-c", "cat /file; echo $A")).stdout, "good\n1\n");
      assert.equal((await clones[0]!.info()).memory_mib, 96);
      const [node] = await runtime.snapshots(own.id);
      assert.equal(node!.name, good);
      assert.ok(node!.boxes.length >= 2 && node!.added_bytes > 0);
      await Promise.all(clones.map((clone) => clone.close()));
      assert.ok(!(await runtime.list()).some(({ id }) => clones.some((clone) => clone.id === id)));
      await assert.rejects(own.snapshot("default"), failsAs("AlreadyExistsError"));
      await assert.rejects(own.rollback("default"), failsAs("InvalidArgumentError", /no snapshot/));
      await assert.rejects(own.clone({ n: 101 }), failsAs("InvalidArgumentError"));
      await assert.rejects(own.clone({ options: { name: "x" } as never }), failsAs("InvalidArgumentError", /name/));
      await assert.rejects(listed(own.diff("nobody:1")), failsAs("NotFoundError"));
      await runtime.images.remove(good, { force: true });
    });

    test("a server keeps what a box used over time", async () => {
      if (name === "in process") return assert.rejects(box.metricsSeries(), failsAs("UnsupportedError", /server/));
      const series = await box.metricsSeries({ from: new Date(Date.now() - 600_000), step_seconds: 60 });
      assert.deepEqual([series.box_id, series.step_seconds], [box.id, 60]);
      assert.ok(Array.isArray((await box.metricsSeries({ from: "90m" })).points));
      await assert.rejects(box.metricsSeries({ from: "yesterday" }), failsAs("InvalidArgumentError", /from/));
      await assert.rejects(box.metricsSeries({ from: 7 as never }), failsAs("InvalidArgumentError", /from/));
    });

    test("a watch tells what changes, and how it ends", async () => {
      await box.files.makeDirectory("/watched/below");
      await using watch = await box.files.watch("/watched", { recursive: true });
      await box.run("sh", "-c", "cd /watched; mkfifo below/p; mv below/p q; rm q; rmdir below; cd /; rmdir /watched");
      const seen = await listed(watch);
      assert.deepEqual(seen.slice(0, 2), [{ type: "create", path: "/watched/below/p" }, { type: "rename", path: "/watched/q", from: "/watched/below/p" }]);
      assert.deepEqual(seen.at(-1), { type: "end", reason: "removed" });
      assert.equal(await watch.read(), null);
      await assert.rejects(box.files.watch("/watched"), failsAs("NotFoundError"));
    });

    test("ten watches wait at once, and close ends a read that waits", async () => {
      await box.files.makeDirectory("/tmp/ten");
      const watches = await Promise.all(Array.from({ length: 10 }, () => box.files.watch("/tmp/ten")));
      const reads = watches.map((w) => w.read());
      await assert.rejects(watches[0]!.read(), failsAs("InvalidStateError"));
      await box.run("mkfifo", "/tmp/ten/for-all");
      for (const event of await Promise.all(reads)) assert.deepEqual(event, { type: "create", path: "/tmp/ten/for-all" });
      const waiting = watches.map((w) => assert.rejects(w.read(), failsAs("CanceledError")));
      await Promise.all(watches.map((w) => w.close()));
      await Promise.all(waiting);
      await watches[0]!.close();
    });

    test("a stopped box keeps its disk, and is started again", async () => {
      await using kept = await runtime.create("default", { network: "None", auto_remove: false, name: "kept" });
      await kept.run("sh", "-c", "echo kept > /root/file");
      await kept.stop();
      assert.equal((await kept.info()).status, "stopped");
      await assert.rejects(kept.stop(), failsAs("InvalidStateError"));
      await kept.start();
      const again = await runtime.get("kept");
      assert.equal((await again.run("cat", "/root/file")).stdout, "kept\n");
      await assert.rejects(runtime.create("default", { name: "kept" }), failsAs("AlreadyExistsError"));
      await assert.rejects(again.remove({ force: false }), failsAs("InvalidStateError"));
      await again.remove();
      await assert.rejects(runtime.get("kept"), failsAs("NotFoundError"));
    });

    test("images are imported, listed and removed", async () => {
      const image = await runtime.images.import("mine:1", name === "in process" ? host.rootfs : archive());
      assert.match(image.name, /mine:1/);
      assert.ok((await runtime.images.list()).some((i) => i.id === image.id));
      await assert.rejects(runtime.images.pull("127.0.0.1:1/none:1", () => {}), failsAs("NetworkError"));
      const file = join(host.directory, "mine.tar");
      await runtime.images.export("mine:1", file, { compression: "gzip" });
      assert.equal((await runtime.images.import("mine:2", file)).layers.length, image.layers.length);
      await assert.rejects(runtime.images.export("nobody:1", file), failsAs("NotFoundError"));
      await assert.rejects(runtime.images.push("mine:1"), failsAs("InvalidArgumentError"));
      await assert.rejects(runtime.images.push("mine:1", { as: "127.0.0.1:1/x:1", progress: () => {} }), failsAs("NetworkError"));
      await runtime.images.remove("mine:2");
      await runtime.images.remove("mine:1");
      await assert.rejects(runtime.images.remove("mine:1"), failsAs("NotFoundError"));
    });

    test("one reads at a time, and close ends a read that waits", async () => {
      const sleep = await box.exec("sleep", "100");
      const reading = sleep.wait();
      await assert.rejects(sleep[Symbol.asyncIterator]().next(), failsAs("InvalidStateError"));
      await sleep.close();
      await assert.rejects(reading, failsAs("CanceledError"));
      await sleep.close();
      await assert.rejects(sleep.stdin.write("x"), failsAs("ClosedError"));
    });

    test("a closed box and a closed runtime refuse everything, and close twice", async () => {
      const other = await open();
      const gone = await other.create("default", { network: "None" });
      await gone.close();
      await gone.close();
      await assert.rejects(gone.run("true"), failsAs("ClosedError"));
      await assert.rejects(other.get(gone.id), failsAs("NotFoundError"));
      const left = await other.create("default", { network: "None" });
      await other.close();
      await other.close();
      await assert.rejects(other.list(), failsAs("ClosedError"));
      await assert.rejects(left.info(), failsAs("ClosedError"));
      await left.close();
      await assert.rejects(runtime.get(left.id), failsAs("NotFoundError"));
    });

    test("a runtime that was shut down makes no box", async () => {
      await using other = await open();
      const made = await other.create("default", { network: "None", auto_remove: false });
      await other.shutdown();
      assert.equal((await made.info()).status, "stopped");
      await assert.rejects(other.create("default"), failsAs("StoppedError"));
      await made.remove();
    });

    test("an unknown image is told", async () => {
      await assert.rejects(runtime.create("127.0.0.1:1/none:1"), failsAs("ImageError"));
    });
  });
}

/** listed returns all of what comes one by one. */
async function listed<T>(all: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const one of all) list.push(one);
  return list;
}

/** withRuntime asks the home itself. */
async function withRuntime<T>(f: (runtime: Runtime) => Promise<T>): Promise<T> {
  await using runtime = await Runtime.local();
  return await f(runtime);
}

async function readBack(box: Box, content: string): Promise<Uint8Array> {
  await box.files.writeFile("/tmp/back", content);
  return box.files.readFile("/tmp/back");
}

/** archive returns the file of a tar of the root file system. */
function archive(): string {
  const tar = join(host.directory, "rootfs.tar");
  execFileSync("tar", ["-C", host.rootfs, "-cf", tar, "."]);
  return tar;
}
