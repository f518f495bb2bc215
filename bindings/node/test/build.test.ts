/** Images that are built of recipes. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Runtime, SandboxError, type BuildEvent } from "libsandbox";
import { home, project, serve, type Server } from "./lib.js";

const host = home();
const context = mkdtempSync(join(tmpdir(), "libsandbox-build-"));
let server: Server;
before(async () => {
  execFileSync(join(project, "build/sandbox"), ["--local", "images", "import", "base", join(project, "build/debian.tar")], { stdio: ["ignore", "ignore", "inherit"] });
  writeFileSync(join(context, "file"), "copied\n");
  server = await serve(host.directory);
});
after(async () => { await server.stop(); await host.leave(); rmSync(context, { recursive: true }); });

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

for (const [name, open] of surfaces) {
  describe(name, () => {
    let runtime: Runtime;
    before(async () => { runtime = await open(); });
    after(() => runtime.close());

    test("a build tells its steps and what they print", async () => {
      const recipe = 'FROM base\nARG A\nRUN echo $A "grüße 🚧"\nCOPY file /copied\nLABEL a=b\n';
      const options = { context, recipe, name: "built:1", args: { A: "now" } };
      const events: BuildEvent[] = [];
      await using build = await runtime.images.startBuild({ ...options, no_cache: true });
      for await (const event of build) events.push(event);
      const image = await build.result();
      assert.equal(events.map(({ output }) => output?.data ?? "").join(""), "now grüße 🚧\n");
      assert.deepEqual(events.at(-1), { type: "end", image });
      assert.deepEqual(image.labels, { a: "b" });
      assert.deepEqual((await runtime.images.build(options)).layers, image.layers);
      await runtime.images.remove("built:1", { force: true });
    });

    test("what fails", async () => {
      await assert.rejects(runtime.images.startBuild({ recipe: "FROM base\nRUM x\n" }), failsAs("InvalidArgumentError", /line 2/));
      await assert.rejects(runtime.images.build({ context, recipe: "FROM base\nCOPY nothing /\n" }), failsAs("NotFoundError", /line 2/));
      await assert.rejects(runtime.images.build({ recipe: "FROM base\nRUN exit 3\n" }), failsAs("ImageError", /exit code 3/));
      await assert.rejects(runtime.images.build({ recipe: "FROM base\nRUN sleep 1000\n", timeout_ms: 3000 }), failsAs("TimeoutError", /line 2/));
      await assert.rejects(runtime.images.build({ recipe: "FROM base\n", x: 1 } as object), failsAs("InvalidArgumentError", /no member x/));
    });

    test("a build that is closed ends", async () => {
      const build = await runtime.images.startBuild({ recipe: "FROM base\nRUN echo on; sleep 1000\n" });
      for await (const event of build) if (event.output) break;
      const waits = assert.rejects(build.read(), failsAs("CanceledError"));
      await build.close();
      await waits;
      for (const end = Date.now() + 60_000; (await runtime.list()).length > 0;) assert.ok(Date.now() < end); // a server ends it when it notices
    });
  });
}
