// E2B's SDK for JavaScript, unmodified: what the daemon answers, and the errors that it answers with.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";

const require = createRequire(`${process.env.NODE_MODULES}/`);
const e2b = require("e2b");
const { Sandbox, CommandExitError, FileType, FilesystemEventType } = e2b;

/** Waits until found returns something true, and returns that. */
async function until(found) {
  const end = Date.now() + 20_000;
  for (;;) {
    const it = await found();
    if (it) return it;
    assert.ok(Date.now() < end, "it took too long");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe("boxes", () => {
  const made = [];
  const create = async (opts) => {
    const sandbox = await Sandbox.create({ timeoutMs: 60_000, ...opts });
    made.push(sandbox);
    return sandbox;
  };
  after(() => Promise.all(made.map((sandbox) => sandbox.kill())));

  test("create, look, kill", async () => {
    const sandbox = await create({ metadata: { who: "a b&c=é" }, envs: { MINE: "yes" } });
    const info = await sandbox.getInfo();
    assert.equal(info.sandboxId, sandbox.sandboxId);
    assert.equal(info.state, "running");
    assert.deepEqual(info.metadata, { who: "a b&c=é" });
    assert.equal((await sandbox.commands.run("echo $MINE")).stdout, "yes\n");
    assert.equal(await sandbox.isRunning(), true);
    assert.equal(await sandbox.kill(), true);
    assert.equal(await sandbox.isRunning(), false);
    assert.equal(await Sandbox.kill(sandbox.sandboxId), false);
    await assert.rejects(sandbox.getInfo(), e2b.NotFoundError);
    await assert.rejects(sandbox.commands.run("true"), e2b.SandboxNotFoundError);
  });

  test("list", async () => {
    const ids = [];
    for (let n = 0; n < 3; n++) ids.push((await create({ metadata: { list: "js" } })).sandboxId);
    const found = [];
    const pages = Sandbox.list({ query: { metadata: { list: "js" }, state: ["running"] }, limit: 2 });
    while (pages.hasNext) found.push(...(await pages.nextItems()).map((one) => one.sandboxId));
    assert.deepEqual(found, ids.reverse());
  });

  test("time, pause and resume", async () => {
    const sandbox = await create({ lifecycle: { onTimeout: "pause" } });
    const before = (await sandbox.getInfo()).endAt;
    await sandbox.setTimeout(600_000);
    assert.ok((await sandbox.getInfo()).endAt - before > 500_000);
    assert.equal(await sandbox.pause(), true);
    assert.equal(await sandbox.pause(), false);
    assert.equal((await sandbox.getInfo()).state, "paused");
    const again = await Sandbox.connect(sandbox.sandboxId);
    assert.equal((await again.getInfo()).state, "running");
    assert.ok((await again.getMetrics()).at(-1).memUsed > 0);
    await again.setTimeout(1_000);
    await until(async () => (await again.getInfo()).state === "paused");
  });

  test("what is refused", async () => {
    await assert.rejects(Sandbox.create({ apiKey: "e2b_0000000000000000000000000000000000000000" }), e2b.AuthenticationError);
    await assert.rejects(Sandbox.connect("box_aaaaaaaaaaaaaaaaaaaa"), e2b.NotFoundError);
    await assert.rejects(Sandbox.create({ network: { allowOut: ["1.1.1.1"] } }), /unimplemented/);
    const sandbox = await create();
    await assert.rejects(sandbox.createSnapshot(), /unimplemented/);
  });
});

describe("the code interpreter", () => {
  let box;
  before(async () => {
    box = await require("@e2b/code-interpreter").Sandbox.create({ timeoutMs: 300_000 });
  });
  after(() => box.kill());

  test("run code", async () => {
    let said = "";
    const ran = await box.runCode("x = 41\nprint('out')\nx + 1", { onStdout: (message) => void (said += message.line) });
    assert.deepEqual([ran.text, ran.logs.stdout.join(""), said, ran.error], ["42", "out\n", "out\n", undefined]);
    const failed = await box.runCode("1 / 0");
    assert.deepEqual([failed.error.name, failed.error.value], ["ZeroDivisionError", "division by zero"]);
    const context = await box.createCodeContext({ cwd: "/tmp" });
    assert.equal((await box.runCode("x", { context })).error.name, "NameError");
    assert.ok((await box.listCodeContexts()).some((one) => one.id === context.id && one.cwd === "/tmp"));
    await box.restartCodeContext(context);
    await box.removeCodeContext(context);
    await assert.rejects(box.runCode("1", { context }), e2b.NotFoundError);
    await assert.rejects(box.runCode("1", { language: "cobol" }), e2b.SandboxError);
  });
});

describe("in a box", () => {
  let box;
  before(async () => {
    box = await Sandbox.create({ timeoutMs: 300_000 });
  });
  after(() => box.kill());

  test("commands", async () => {
    let said = "";
    const result = await box.commands.run("whoami; pwd; echo $A >&2", { envs: { A: "b" }, onStdout: (s) => void (said += s) });
    assert.deepEqual([result.stdout, result.stderr, result.exitCode], ["user\n/home/user\n", "b\n", 0]);
    assert.equal(said, result.stdout);
    assert.equal((await box.commands.run("whoami; pwd", { user: "root", cwd: "/tmp" })).stdout, "root\n/tmp\n");
    await assert.rejects(box.commands.run("echo no >&2; exit 3"), (error) => error instanceof CommandExitError && error.exitCode === 3);
    await assert.rejects(box.commands.run("sleep 61.5", { timeoutMs: 1_000 }), e2b.TimeoutError);
    await assert.rejects(box.commands.run("true", { user: "nobody-of-this-name" }), e2b.InvalidArgumentError);
    await Promise.all(Array.from({ length: 20 }, async (_, n) => assert.equal((await box.commands.run(`echo ${n}`)).stdout, `${n}\n`)));
  });

  test("commands in the background", async () => {
    const handle = await box.commands.run("read line; echo got $line; sleep 60.5", { background: true, stdin: true });
    assert.ok((await box.commands.list()).some((p) => p.pid === handle.pid && p.cwd === "/home/user"));
    await box.commands.sendStdin(handle.pid, "something\n");
    await until(() => handle.stdout === "got something\n");
    await handle.disconnect();
    const again = await box.commands.connect(handle.pid);
    const ended = assert.rejects(again.wait(), CommandExitError);
    assert.equal(await box.commands.kill(handle.pid), true);
    await ended;
    await until(async () => !(await box.commands.kill(handle.pid)));
    await assert.rejects(box.commands.connect(handle.pid), e2b.NotFoundError);
    const cat = await box.commands.run("cat", { background: true, stdin: true });
    await cat.sendStdin("all");
    await cat.closeStdin();
    assert.equal((await cat.wait()).stdout, "all");
  });

  test("terminals", async () => {
    let shown = "";
    const pty = await box.pty.create({ cols: 80, rows: 24, onData: (data) => void (shown += Buffer.from(data)), timeoutMs: 60_000 });
    const ended = pty.wait().catch(() => undefined);
    await box.pty.sendInput(pty.pid, new TextEncoder().encode("stty size\n"));
    await until(() => shown.includes("24 80"));
    await box.pty.resize(pty.pid, { cols: 100, rows: 40 });
    await box.pty.sendInput(pty.pid, new TextEncoder().encode("stty size\n"));
    await until(() => shown.includes("40 100"));
    assert.equal(await box.pty.kill(pty.pid), true);
    await ended;
  });

  test("files", async () => {
    const { files } = box;
    const written = await files.write("some/a.txt", "text ä");
    assert.deepEqual([written.path, written.name, written.type], ["/home/user/some/a.txt", "a.txt", FileType.FILE]);
    assert.equal(await files.read("some/a.txt"), "text ä");
    assert.equal((await files.read("some/a.txt", { format: "bytes" })).length, 7);
    assert.equal(await (await files.read("some/a.txt", { format: "blob" })).text(), "text ä");
    const stream = await files.read("some/a.txt", { format: "stream" });
    assert.equal(await new Response(stream).text(), "text ä");
    const two = await files.write([{ path: "x/1", data: "1" }, { path: "x/2", data: new Blob(["2"]) }]);
    assert.deepEqual(two.map((f) => f.path), ["/home/user/x/1", "/home/user/x/2"]);
    assert.deepEqual((await files.list("x")).map((f) => f.name), ["1", "2"]);
    const info = await files.getInfo("x/1");
    assert.deepEqual([info.size, info.permissions, info.owner], [1, "-rw-r--r--", "user"]);
    assert.equal(await files.makeDir("new/deep"), true);
    assert.equal(await files.makeDir("new/deep"), false);
    assert.equal((await files.rename("x/1", "new/deep/1")).path, "/home/user/new/deep/1");
    assert.equal(await files.exists("x/1"), false);
    await files.remove("new");
    assert.equal(await files.exists("new"), false);
    await assert.rejects(files.read("/not/there"), e2b.NotFoundError);
    await assert.rejects(files.list("/not/there"), e2b.NotFoundError);
    await assert.rejects(files.read("/etc"), e2b.InvalidArgumentError);
  });

  test("watches", async () => {
    const seen = [];
    await box.files.makeDir("watched/sub");
    const watch = await box.files.watchDir("watched", (event) => void seen.push([event.name, event.type]), { recursive: true });
    await box.commands.run("cd watched && echo a >sub/new && mv sub/new moved && rm moved");
    await until(() => seen.some(([name, type]) => name === "moved" && type === FilesystemEventType.REMOVE));
    for (const event of [["sub/new", FilesystemEventType.CREATE], ["sub/new", FilesystemEventType.WRITE], ["sub/new", FilesystemEventType.RENAME], ["moved", FilesystemEventType.CREATE]])
      assert.ok(seen.some((one) => one.join() === event.join()), `${event} in ${seen.join(" ")}`);
    await watch.stop();
    await assert.rejects(box.files.watchDir("not/there", () => {}), e2b.NotFoundError);
  });

  test("signed links", async () => {
    await box.files.write("linked", "for all");
    const link = await box.downloadUrl("linked", { useSignatureExpiration: 60 });
    assert.equal(await (await fetch(link)).text(), "for all");
    assert.equal((await fetch(link.replace("path=linked", "path=other"))).status, 401);
    const form = new FormData();
    form.append("file", new Blob(["by a link"]), "up");
    assert.equal((await fetch(await box.uploadUrl("up"), { method: "POST", body: form })).status, 200);
    assert.equal(await box.files.read("up"), "by a link");
  });
});
