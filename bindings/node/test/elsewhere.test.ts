/** The remote half where there is no Node.js: in Deno, and in Chromium. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createServer, request, type Server as HTTPServer } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { chromium } from "playwright-core";
import { home, serve, top, type Server } from "./lib.js";
import { look, wanted } from "./portable.js";

const host = home();
let server: Server;
before(async () => { server = await serve(host.directory); });
after(async () => { await host.leave(); });

test("Node.js without a WebSocket says which half has one", async () => {
  const { WebSocket } = globalThis;
  Reflect.deleteProperty(globalThis, "WebSocket");
  try {
    await assert.rejects(look(server.url, server.apiKey), { name: "UnsupportedError", message: /import "libsandbox"/ });
  } finally {
    if (WebSocket) globalThis.WebSocket = WebSocket;
  }
});

test("Deno", async () => {
  const deno = join(top, "node_modules/@deno/linux-x64-glibc/deno");
  const cache = mkdtempSync(join(tmpdir(), "deno-"));
  const args = ["run", "--no-prompt", "--no-config", "--cached-only", `--import-map=${join(top, "test/imports.json")}`, `--allow-net=${new URL(server.url).host}`, join(top, "out/test/deno.js"), server.url, server.apiKey];
  try {
    const { stdout } = await promisify(execFile)(deno, args, { env: { ...process.env, DENO_DIR: cache, DENO_NO_UPDATE_CHECK: "1" } });
    assert.deepEqual(JSON.parse(stdout), wanted);
  } finally {
    rmSync(cache, { recursive: true, force: true });
  }
});

test("Chromium, behind one origin with the server", async () => {
  const site = await behind(server);
  try {
    assert.deepEqual(await inChromium(site.url, `look(location.origin, ${JSON.stringify(server.apiKey)})`), wanted);
  } finally {
    site.close();
  }
});

test("Chromium, from another origin, which the server does not allow", async () => {
  const site = await behind(server);
  try {
    const name = await inChromium(site.url, `look(${JSON.stringify(server.url)}, ${JSON.stringify(server.apiKey)}).catch((failure) => failure.name)`);
    assert.equal(name, "UnavailableError");
  } finally {
    site.close();
  }
});

test("the remote half imports nothing of Node.js, nor of other packages", () => {
  const files = ["", "remote/"].flatMap((directory) => readdirSync(join(top, "dist", directory)).filter((name) => name.endsWith(".js")).map((name) => directory + name));
  assert.ok(files.length > 10);
  for (const file of files) {
    for (const [, from] of readFileSync(join(top, "dist", file), "utf8").matchAll(/(?:\bfrom |\bimport\()"([^"]+)"\)?;$/gm)) {
      assert.match(from!, /^\.{1,2}\/(?!node\/)/, `${file} imports ${from}`);
    }
  }
});

/** inChromium evaluates an expression on a page, where look is defined. */
async function inChromium(url: string, expression: string): Promise<unknown> {
  const profile = mkdtempSync(join(tmpdir(), "chromium-"));
  const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  const browser = await chromium.launchPersistentContext(profile, { executablePath: "/usr/bin/chromium", headless: true, args });
  try {
    const page = await browser.newPage();
    await page.goto(url);
    return await page.evaluate(`import("/out/test/portable.js").then(({ look }) => ${expression})`);
  } finally {
    await browser.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** behind serves the package's files, and all else from the server, so that both have one origin. */
async function behind({ url }: Server): Promise<{ url: string; close(): void }> {
  const { hostname, port } = new URL(url);
  const page = `<script type="importmap">${readFileSync(join(top, "test/imports.json"), "utf8").replace("../dist", "/dist")}</script>`;
  const site: HTTPServer = createServer((asked, reply) => {
    if (asked.url === "/") return reply.writeHead(200, { "Content-Type": "text/html" }).end(page);
    if (/^\/(dist|out)\/[\w/.]+\.js$/.test(asked.url!)) return reply.writeHead(200, { "Content-Type": "text/javascript" }).end(readFileSync(join(top, asked.url!)));
    return asked.pipe(request({ hostname, port, path: asked.url, method: asked.method, headers: asked.headers }, (answer) => {
      reply.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(reply);
    }));
  });
  site.on("upgrade", (asked, socket, head) => {
    const onward = connect(Number(port), hostname, () => {
      onward.write(`${asked.method} ${asked.url} HTTP/1.1\r\n${asked.rawHeaders.map((h, i) => i % 2 ? `${h}\r\n` : `${h}: `).join("")}\r\n`);
      onward.write(head);
      socket.pipe(onward).pipe(socket);
    });
    for (const end of [socket, onward]) end.on("error", () => {}).on("close", () => { socket.destroy(); onward.destroy(); });
  });
  await once(site.listen(0, "127.0.0.1"), "listening");
  return { url: `http://127.0.0.1:${(site.address() as AddressInfo).port}/`, close: () => { site.close(); site.closeAllConnections(); } };
}
