// The tools of `sandbox mcp` and of a daemon, with the official SDK for TypeScript and
// the command line of the inspector. The environment names the home and the daemon.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const { SANDBOX, STDIO_JSON, HTTP_JSON, NODE_MODULES, MCP_URL, MCP_KEY } = process.env;
const sdk = (file) => import(join(NODE_MODULES, "@modelcontextprotocol/sdk/dist/esm/client", file));
const { Client } = await sdk("index.js");
const { StdioClientTransport } = await sdk("stdio.js");
const { StreamableHTTPClientTransport } = await sdk("streamableHttp.js");

const transports = {
  "standard streams": () => new StdioClientTransport({ command: SANDBOX, args: ["--local", "mcp", "--memory", "64m"], env: { ...process.env } }),
  HTTP: () => new StreamableHTTPClientTransport(new URL(MCP_URL), { requestInit: { headers: { Authorization: `Bearer ${MCP_KEY}` } } }),
};

for (const [name, transport] of Object.entries(transports)) {
  test(`the SDK over ${name}`, async () => {
    const client = new Client({ name: "test", version: "1" });
    const over = transport();
    await client.connect(over);
    const call = (tool, args) => client.callTool({ name: tool, arguments: args });
    const { tools } = await client.listTools(); // from here on the client holds results to their schema
    assert.ok(tools.length >= 7);

    const ran = await call("run", { cmd: ["sh", "-c", "cat; exit 3"], stdin: "hällo" });
    assert.equal(ran.content[0].text, "exit code 3\nstdout:\nhällo");
    assert.equal(ran.structuredContent.exit_code, 3);

    const box = (await call("create_box", {})).structuredContent.id;
    assert.equal((await call("write_file", { box, path: "/a/b", content: "ä" })).structuredContent.size, 2);
    assert.equal((await call("read_file", { box, path: "/a/b" })).content[0].text, "ä");
    assert.deepEqual((await call("list_boxes", {})).structuredContent.boxes.map((b) => b.id), [box]);

    const refused = await call("exec", { box: "none", cmd: "ls" });
    assert.ok(refused.isError);
    assert.equal(refused.content[0].text, "malformed: invalid arguments: cmd must be a list");
    assert.match((await call("exec", { box: "none", cmd: ["ls"] })).content[0].text, /^box_not_found: /);

    const late = new AbortController();
    const slow = client.callTool({ name: "exec", arguments: { box, cmd: ["sh", "-c", "touch /begun; sleep 55"] } }, undefined, { signal: late.signal });
    await call("exec", { box, cmd: ["sh", "-c", "until [ -e /begun ]; do sleep 0.01; done"] });
    late.abort();
    await assert.rejects(slow);
    const gone = await call("exec", { box, cmd: ["sh", "-c", "while grep -q ^sleep /proc/[0-9]*/comm; do :; done"], timeout_ms: 20000 });
    assert.equal(gone.structuredContent.exit_code, 0);
    await over.terminateSession?.(); // HTTP has sessions that outlive connections
    await client.close();
  });
}

/** inspect runs the command line of the inspector and returns what it prints. */
function inspect(...args) {
  const inspector = join(NODE_MODULES, ".bin/mcp-inspector");
  const ran = spawnSync(process.execPath, [inspector, "--cli", ...args], { encoding: "utf8", env: { ...process.env, MCP_INSPECTOR_SECRET_STORE: "memory" } });
  assert.equal(ran.status, 0, ran.stderr + ran.stdout);
  return { result: JSON.parse(ran.stdout), said: ran.stderr };
}

/** adapted calls use with the name of a copy of a configuration of the documentation that adapt has changed. */
function adapted(file, adapt, use) {
  const dir = mkdtempSync(join(tmpdir(), "mcp"));
  try {
    const config = join(dir, "config.json");
    writeFileSync(config, adapt(readFileSync(file, "utf8")));
    use("--config", config, "--server", "sandbox");
  } finally {
    rmSync(dir, { recursive: true });
  }
}

const hi = ["--method", "tools/call", "--tool-name", "run", "--tool-arg", 'cmd=["echo","hi"]'];

/** inTestHome names the home of the test: the inspector passes few variables of the environment on. */
function inTestHome(text) {
  const config = JSON.parse(text);
  config.mcpServers.sandbox.env = { SANDBOX_HOME: process.env.SANDBOX_HOME };
  return JSON.stringify(config);
}

test("the inspector, with the configuration of the documentation", () => {
  adapted(STDIO_JSON, inTestHome, (...server) => {
    const { result, said } = inspect(...server, "--method", "tools/list", "--strict");
    assert.ok(result.tools.some((t) => t.name === "run"));
    assert.doesNotMatch(said, /Path: inputSchema/); // nothing that a model may not understand
    assert.equal(inspect(...server, ...hi).result.structuredContent.stdout, "hi\n");
  });
});

test("the inspector over HTTP, with the configuration of the documentation", () => {
  const atDaemon = (text) => text.replace("http://127.0.0.1:9090/v1/mcp", MCP_URL).replace("sbx_live_...", MCP_KEY);
  adapted(HTTP_JSON, atDaemon, (...server) => assert.equal(inspect(...server, ...hi).result.structuredContent.stdout, "hi\n"));
});
