/** Bad input: each is refused with the package's own class, and before the C call where it has a wrong type. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs, { writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { InvalidArgumentError, Runtime, SandboxError, classes, kinds, type Box } from "libsandbox";
import { home, program } from "./lib.js";

const host = home();
let runtime: Runtime;
let box: Box;
before(async () => {
  runtime = await Runtime.local();
  box = await runtime.create("default", { network: "None" });
});
after(async () => { await runtime.close(); await host.leave(); });

/** wrong passes what the types forbid. */
const wrong = (value: unknown) => value as never;

test("wrong types are refused before the call", async () => {
  const table: [string, () => Promise<unknown>][] = [
    ["a number as image", () => runtime.create(wrong(1))],
    ["no image", () => runtime.create(null)],
    ["NUL in an image", () => runtime.create("a\0b")],
    ["options that are text", () => runtime.create("default", wrong("cpus=1"))],
    ["text as cpus", () => runtime.create("default", wrong({ cpus: "1" }))],
    ["NaN as memory", () => runtime.create("default", { memory_mib: NaN })],
    ["an unknown option", () => runtime.create("default", wrong({ memory: 64 }))],
    ["a number in env", () => runtime.create("default", wrong({ env: { A: 1 } }))],
    ["an object as ports", () => runtime.create("default", wrong({ ports: {} }))],
    ["no id", () => runtime.get(wrong(undefined))],
    ["no command", () => box.exec(wrong([]))],
    ["a number in a command", () => box.exec("echo", wrong(1))],
    ["NUL in a command", () => box.exec("echo", "a\0b")],
    ["text as options", () => box.exec(["echo"], wrong("a"))],
    ["an unknown option of a command", () => box.exec(["echo"], wrong({ timeout: 1 }))],
    ["a number as input", () => box.exec(["cat"], wrong({ stdin: 1 }))],
    ["text as tty", () => box.exec(["cat"], wrong({ tty: "yes" }))],
    ["an object as a file's content", () => box.files.writeFile("/tmp/a", wrong({}))],
    ["a mode that is none", () => box.files.writeFile("/tmp/a", "a", { mode: 0o10000 })],
    ["a number as a path to look at", () => box.files.stat(wrong(1))],
    ["a number as user", () => box.files.stat("/", { user: wrong(0) })],
    ["an unknown option of a file", () => box.files.stat("/", wrong({ follow: true }))],
    ["too many levels", async () => { for await (const _ of box.files.list("/", { depth: 65 })); }],
    ["a path with ..", () => box.files.stat("/a/../b")],
    ["a path that is too long", () => box.files.stat("/" + "a".repeat(4096))],
    ["a mode of a directory that is none", () => box.files.makeDirectory("/a", { mode: -1 })],
    ["a watch of a file", () => box.files.watch("/etc/passwd")],
    ["a number as path", () => box.files.copyIn(wrong(1), "/tmp")],
    ["a number as reference", () => runtime.images.pull(wrong(1))],
  ];
  for (const [what, call] of table) await assert.rejects(call, InvalidArgumentError, what);
});

test("what the library refuses names the member", async () => {
  await assert.rejects(runtime.create("default", { cpus: 0 }), (failure: SandboxError) => failure instanceof InvalidArgumentError && /cpus/.test(failure.message));
  await assert.rejects(runtime.create("default", { cpus: 1.5 }), InvalidArgumentError);
});

test("input of an execution is checked", async () => {
  await using cat = await box.exec(["cat"], { stdin_open: true });
  await assert.rejects(cat.stdin.write(wrong(1)), InvalidArgumentError);
  await assert.rejects(cat.signal("NONE"), InvalidArgumentError);
  await assert.rejects(cat.signal(65), InvalidArgumentError);
  await assert.rejects(cat.resize(80, 24), { code: "invalid_state" });
  await assert.rejects(cat.kill({ grace_ms: -1 }), InvalidArgumentError);
  await cat.kill();
  await using none = await box.exec("sleep", "100");
  await assert.rejects(none.stdin.write("a"), { code: "invalid_state" });
  await none.kill();
});

test("a command whose input can't be opened is ended", async () => {
  const { openSync } = fs;
  fs.openSync = () => { throw new Error("EMFILE: on purpose"); };
  syncBuiltinESMExports();
  try {
    await assert.rejects(box.exec(["sleep", "1000"], { stdin_open: true }), /EMFILE/);
  } finally {
    fs.openSync = openSync;
    syncBuiltinESMExports();
  }
  const last = async () => (await box.execs())[0]!;
  while ((await last()).status === "running");
  const { cmd, status } = await last();
  assert.deepEqual([cmd, status], [["sleep", "1000"], "canceled"]);
});

test("each class of failures is a class with code and number", () => {
  for (const [number, Class] of Object.entries(classes)) {
    const failure = new Class("why");
    assert.ok(failure instanceof SandboxError && failure instanceof Error);
    assert.equal(failure.number, Number(number));
    assert.equal(failure.name, Class.name);
    assert.equal(`${failure.code.replaceAll("_", "")}error`, Class.name.toLowerCase());
  }
  for (const number of Object.values(kinds)) assert.ok(number in classes);
});

test("a process that ends leaves no box", async () => {
  for (const [how, code] of [["returns", 0], ["exits", 3], ["throws", 1]] as const) {
    const { child, ended, gone } = await run(how);
    child.stdin!.write("end\n");
    assert.deepEqual(await ended, [code, null], how);
    await gone;
  }
});

test("what a call made of a runtime that is closed meanwhile is refused", async () => {
  const { Library } = await import(new URL("library.js", import.meta.resolve("libsandbox")).href) as typeof import("../dist/node/library.js");
  const library = await Library.load();
  const opened = await library.handle("call", "sandbox_runtime_new", null, null);
  const made = await library.handle("call", "sandbox_get", opened, box.id);
  assert.equal(library.id("sandbox_box_id", made), box.id);
  await library.freeSlowly("sandbox_runtime_free", opened);
  assert.throws(() => library.id("sandbox_box_id", made), { name: "ClosedError" });
});

test("what is begun while its runtime is closed is refused, and the process goes on", async () => {
  const child = program("closes.js", { UV_THREADPOOL_SIZE: "1" });
  const stuck = setTimeout(() => child.kill("SIGKILL"), 60_000);
  const said = child.stdout!.toArray();
  assert.deepEqual(await once(child, "exit"), [0, null]);
  clearTimeout(stuck);
  assert.equal(Buffer.concat(await said).toString(), "exec ClosedError\nrun ClosedError\nwatch ClosedError\nbuild ClosedError\n");
});

test("an interrupt during run removes the box", async () => {
  const { child, ended, gone } = await run("runs");
  child.kill("SIGINT");
  assert.deepEqual(await ended, [null, "SIGINT"]);
  await gone;
});

test("a library that is missing or of another version is told", async () => {
  const source = join(host.directory, "other.c");
  writeFileSync(source, 'const char *sandbox_version(void) { return "0.0.1"; }\n');
  execFileSync("cc", ["-shared", "-fPIC", "-o", join(host.directory, "other.so"), source]);
  for (const [file, name, message] of [["other.so", "LibraryError", /0\.0\.1/], ["none.so", "LibraryError", /none\.so/]] as const) {
    const child = program("opens.js", { SANDBOX_LIBRARY: join(host.directory, file) });
    const [said] = await once(child.stdout!, "data") as [Buffer];
    assert.match(said.toString(), new RegExp(`^${name} `));
    assert.match(said.toString(), message);
    await once(child, "exit");
  }
});

/** run starts a program that makes a box; `gone` resolves when the box is gone. */
async function run(how: string) {
  const child = program("leaves.js", { HOW: how });
  const ended = once(child, "exit");
  const [said] = await once(child.stdout!, "data") as [Buffer];
  const its = await runtime.get(said.toString().trim());
  const sleeping = await its.exec("sleep", "100");
  const gone = assert.rejects(sleeping.result(), { code: "canceled" }).then(() => sleeping.close());
  return { child, ended, gone };
}
