/** Code in contexts of boxes that have its language. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Runtime, SandboxError, type Box, type CodeEvent, type CodeRun } from "libsandbox";
import { home, project, serve, type Server } from "./lib.js";

const host = home();
let server: Server;
before(async () => {
  execFileSync(join(project, "build/sandbox"), ["--local", "images", "import", "languages", join(project, "build/debian.tar")], { stdio: ["ignore", "ignore", "inherit"] });
  server = await serve(host.directory);
});
after(async () => { await server.stop(); await host.leave(); });

const surfaces: [string, () => Promise<Runtime>][] = [
  ["in process", () => Runtime.local()],
  ["on a server", () => Runtime.remote(server)],
  ["on a socket", () => Runtime.remote({ url: `unix://${host.directory}/sandbox.sock` })],
];

const failsAs = (name: string, message = /./) => (failure: unknown) => {
  assert.ok(failure instanceof SandboxError, String(failure));
  assert.equal(failure.name, name);
  assert.match(failure.message, message);
  return true;
};

const shown = `
class Shown:
    def _repr_mimebundle_(self, **kwargs):
        return {"text/plain": "shown", "text/html": "<b>", "image/png": b"\\x89PNG", "application/json": {"a": [1, None]}}
display(Shown())
6 * 7
`;

/** events reads a run to its end. */
async function events(run: CodeRun): Promise<CodeEvent[]> {
  const all: CodeEvent[] = [];
  for await (const event of run) all.push(event);
  return all;
}

for (const [name, open] of surfaces) {
  describe(name, () => {
    let runtime: Runtime;
    let box: Box;
    before(async () => {
      runtime = await open();
      box = await runtime.create("languages", { network: "None" });
    });
    after(async () => { await runtime.close(); });

    test("runCode returns all that code tells", async () => {
      const first = await box.runCode("import os, sys; print('grüße'); print(os.environ['A'], file=sys.stderr); x = 41", { env: { A: "b" } });
      const { duration_ms, ...rest } = first;
      assert.ok(duration_ms >= 0);
      assert.deepEqual(rest, {
        context_id: "python", execution_count: 1, fresh: true, text: null, stdout: "grüße\n", stderr: "b\n",
        results: [], error: null, status: "succeeded", restarted: false,
      });
      const second = await box.runCode("x + 1");
      assert.deepEqual([second.text, second.execution_count, second.fresh], ["42", 2, false]);
    });

    test("a result has all its forms", async () => {
      const { results, text } = await box.runCode(shown);
      assert.equal(text, "42");
      assert.deepEqual(results, [
        { is_main: false, text: "shown", html: "<b>", png: Buffer.from("\x89PNG", "latin1").toString("base64"), json: { a: [1, null] } },
        { is_main: true, text: "42" },
      ]);
    });

    test("events are read as they come, and an interrupt ends code", async () => {
      await using run = await box.startCode("print('on', flush=True)\nwhile True: pass");
      assert.equal((await run.read())!.type, "start");
      assert.deepEqual(await run.read(), { type: "stdout", text: "on\n" });
      const [waits, interrupted] = await Promise.all([run.read(), box.contexts.interrupt("python")]);
      assert.deepEqual([waits!.error!.name, interrupted.id], ["KeyboardInterrupt", "python"]);
      assert.equal((await run.result()).status, "interrupted");
      assert.equal(await run.read(), null);
    });

    test("the end of code is told, not thrown", async () => {
      const failed = await box.runCode("def f(): 1 / 0\nf()");
      assert.deepEqual([failed.status, failed.error!.name, failed.error!.value], ["failed", "ZeroDivisionError", "division by zero"]);
      assert.match(failed.error!.traceback, /f\(\)/);
      assert.equal((await box.runCode("while True: pass", { timeout_ms: 300 })).status, "timed_out");
      const lost = await box.runCode("os._exit(3)");
      assert.deepEqual([lost.status, lost.restarted, lost.error!.name], ["lost", true, "ContextLost"]);
      assert.equal((await box.runCode("'x' in globals()")).text, "False");
    });

    test("contexts are made, listed, restarted and removed", async () => {
      const made = await box.contexts.create({ language: "bash", working_dir: "/tmp", user: "nobody", env: { A: "made" } });
      assert.deepEqual((await box.contexts.list())[0], made);
      assert.deepEqual([made.language, made.working_dir, made.user, made.box_id], ["bash", "/tmp", "nobody", box.id]);
      const context = made.id;
      assert.equal((await box.runCode("echo $A $B $PWD; B=kept", { context })).stdout, "made /tmp\n");
      assert.equal((await box.runCode("echo $A $B", { context, env: { A: "run" } })).stdout, "run kept\n");
      assert.equal((await box.contexts.restart(context)).id, context);
      assert.equal((await box.runCode("echo $A $B", { context })).stdout, "made\n");
      await box.contexts.remove(context);
      const { contexts } = box;
      for (const refused of [
        () => contexts.remove(context), () => contexts.interrupt(context), () => contexts.restart(context), () => box.runCode("echo", { context }),
      ]) await assert.rejects(refused, failsAs("NotFoundError"), String(refused));
    });

    test("what can't be run is refused", async () => {
      await assert.rejects(box.runCode("1", { language: "javascript" }), failsAs("ExecutionError", /node/));
      await assert.rejects(box.runCode("1", { language: "cobol" as never }), failsAs("InvalidArgumentError", /language/));
      await assert.rejects(box.runCode("1", { context: "../python" }), failsAs("InvalidArgumentError", /context/));
      await assert.rejects(box.runCode(1 as never), failsAs("InvalidArgumentError", /code/));
      await assert.rejects(box.runCode("1", { cwd: "/" } as never), failsAs("InvalidArgumentError", /cwd/));
      await assert.rejects(box.runCode("1", { timeout_ms: -1 }), failsAs("InvalidArgumentError", /timeout_ms/));
      await assert.rejects(box.contexts.create({ working_dir: "relative" }), failsAs("InvalidArgumentError", /working_dir/));
      await assert.rejects(box.contexts.remove(1 as never), failsAs("InvalidArgumentError", /id/));
    });

    // A server gives up a connection after a minute that a client has not closed.
    test("too much output is not kept, and its code is interrupted", { timeout: 40_000 }, async () => {
      await assert.rejects(box.runCode("while True: display('x' * (4 << 20))"), failsAs("ResourceExhaustedError", /64 MiB/));
      assert.equal((await box.runCode("1")).text, "1");
    });

    test("close interrupts code, and a read that waits for it", async () => {
      const run = await box.startCode("import time\nwhile True: time.sleep(1)");
      assert.equal((await run.read())!.type, "start");
      const waits = run.read();
      await assert.rejects(run.read(), failsAs("InvalidStateError", /another call/));
      const [read] = await Promise.allSettled([waits, run.close(), run.close()]);
      assert.equal(failsAs("CanceledError")((read as PromiseRejectedResult).reason), true);
      await assert.rejects(run.read(), failsAs("CanceledError"));
      assert.equal((await box.runCode("1")).text, "1");
    });

    test("runs in a context wait for each other, and all else goes on", async () => {
      await using first = await box.startCode("while True: pass");
      const later = Promise.all(Array.from({ length: 5 }, (_, n) => box.runCode(`${n}`)));
      assert.equal((await box.run("echo", "meanwhile")).stdout, "meanwhile\n");
      await box.files.writeFile("/tmp/meanwhile", "");
      await box.contexts.interrupt("python");
      assert.equal((await events(first)).at(-1)!.status, "interrupted");
      assert.deepEqual((await later).map((outcome) => outcome.text), ["0", "1", "2", "3", "4"]);
    });
  });
}
