/** What only servers do: refuse keys, go away, and stand where nobody answers. */
import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import { once } from "node:events";
import { connect, createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { after, test } from "node:test";
import { ClosedError, ConfigError, NotFoundError, Runtime, Sandbox, StoppedError, UnavailableError, UnauthenticatedError } from "libsandbox";
import { home, serve } from "./lib.js";

const host = home();
after(() => host.leave());

test("the environment says where", async () => {
  const server = await serve(host.directory);
  Object.assign(process.env, { SANDBOX_REST_URL: server.url, SANDBOX_API_KEY: server.apiKey });
  try {
    await using box = await Sandbox.create("default", { network: "None" });
    assert.equal((await box.run("echo", "on the server")).stdout, "on the server\n");
    assert.ok((await box.execs())[0]!.stdout_bytes); // which the daemon alone counts
  } finally {
    delete process.env["SANDBOX_REST_URL"];
    delete process.env["SANDBOX_API_KEY"];
    await server.stop();
  }
});

test("a wrong key is an UnauthenticatedError", async () => {
  const server = await serve(host.directory);
  await using runtime = await Runtime.remote({ url: server.url, apiKey: "wrong" });
  await assert.rejects(runtime.list(), UnauthenticatedError);
  await server.stop();
});

test("addresses that are none are ConfigErrors", async () => {
  for (const url of ["nowhere", "ftp://a", "http://user:password@a", "http://a/?b"]) {
    await assert.rejects(async () => (await Runtime.remote({ url })).list(), ConfigError, url);
  }
  await assert.rejects(async () => Runtime.remote({ url: "http://a", apiKey: "a key" }), ConfigError);
});

test("a server that is not there is an UnavailableError", async () => {
  await using runtime = await Runtime.remote({ url: "http://127.0.0.1:1" });
  await assert.rejects(runtime.list(), (failure: Error) => failure instanceof UnavailableError && /127\.0\.0\.1:1/.test(failure.message));
});

test("an answer of something else is told", async () => {
  const other = createServer((_, reply) => reply.writeHead(404).end("<html>")).listen(0, "127.0.0.1");
  await once(other, "listening");
  await using runtime = await Runtime.remote({ url: `http://127.0.0.1:${(other.address() as AddressInfo).port}` });
  await assert.rejects(runtime.list(), /not an answer of a sandbox service/);
  other.close();
  other.closeAllConnections();
});

for (const [code, fine] of [["resource_exhausted", true], ["rate_limited", false]] as const) {
  test(`a box is gone after an attempt to remove it that ended with ${code}`, async () => {
    let asked = 0;
    const server = createServer((_, reply) => {
      if (asked++ === 0) reply.writeHead(429, { "Retry-After": "0" }).end(JSON.stringify({ error: { code, message: "m" } }));
      else reply.writeHead(404).end(JSON.stringify({ error: { code: "box_not_found", message: "no box" } }));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    await using runtime = await Runtime.remote({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
    try {
      const removal = runtime.remove("a", { force: true });
      await (fine ? removal : assert.rejects(removal, NotFoundError));
      assert.equal(asked, 2);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });
}

for (const [how, failure] of [["close", ClosedError], ["shutdown", StoppedError]] as const) {
  test(`boxes that are made during ${how} are removed`, async () => {
    const [removed, late]: [string[], ServerResponse[]] = [[], []];
    const server = createServer((asked, reply) => {
      if (asked.method === "DELETE") { removed.push(asked.url!.split("?")[0]!); return reply.end("{}"); }
      if (asked.method === "GET") return reply.end(JSON.stringify({ id: "a" }));
      if (late.push(reply) === 2) server.emit("both");
      return reply;
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const runtime = await Runtime.remote({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
    try {
      const box = await runtime.get("a");
      const both = once(server, "both");
      const [create, clone] = [assert.rejects(runtime.create("default"), failure), assert.rejects(box.clone({ n: 2 }), failure)];
      await both;
      await runtime[how]();
      const made = (id: string) => ({ id, auto_remove: false });
      for (const reply of late) reply.end(JSON.stringify(reply.req.url!.endsWith(":clone") ? { boxes: [made("c"), made("d")] } : made("b")));
      await Promise.all([create, clone]);
      assert.deepEqual(removed.sort(), ["/v1/boxes/b", "/v1/boxes/c", "/v1/boxes/d"]);
    } finally {
      await runtime.close();
      server.close();
      server.closeAllConnections();
    }
  });
}

test("a command that can't be connected to is ended", async () => {
  const asked: string[] = [];
  const server = createServer((request, reply) => {
    asked.push(`${request.method} ${request.url}`);
    reply.end(JSON.stringify(request.url!.endsWith("/exec") ? { id: "e", box_id: "a" } : { id: "a" }));
  }).on("upgrade", (_, socket) => socket.destroy()).listen(0, "127.0.0.1");
  await once(server, "listening");
  await using runtime = await Runtime.remote({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  try {
    const box = await runtime.get("a");
    await assert.rejects(box.exec(["cat"], { stdin_open: true }), UnavailableError);
    assert.deepEqual(asked, ["GET /v1/boxes/a", "POST /v1/boxes/a/exec", "POST /v1/boxes/a/exec/e:cancel"]);
    await assert.rejects(box.attach("e"), UnavailableError);
    assert.deepEqual(asked.slice(3), ["GET /v1/boxes/a/exec/e"]); // it goes on
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

test("a runtime that is closed removes the boxes that could not be removed before", async () => {
  let asked = 0;
  const server = createServer((request, reply) => {
    if (request.method === "POST") reply.end(JSON.stringify({ id: "a", auto_remove: true }));
    else if (asked++ === 0) reply.writeHead(409).end(JSON.stringify({ error: { code: "invalid_state", message: "m" } }));
    else reply.end("{}");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const runtime = await Runtime.remote({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
    const box = await runtime.create("default");
    await assert.rejects(box.close());
    await runtime.close();
    assert.equal(asked, 2);
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

test("a server that is killed in the middle of a stream ends it with an error", async () => {
  const server = await serve(host.directory);
  const runtime = await Runtime.remote(server);
  const box = await runtime.create("default", { network: "None" });
  const [one, other] = [await box.exec("sh", "-c", "echo a; sleep 100"), await box.exec(["sh", "-c", "echo a; cat"], { stdin_open: true })];
  const [events, session] = [one[Symbol.asyncIterator](), other[Symbol.asyncIterator]()];
  assert.equal((await events.next()).value!.data.length, 2);
  assert.equal((await session.next()).value!.data.length, 2);
  await server.stop("SIGKILL");
  await assert.rejects(events.next(), UnavailableError);
  await assert.rejects(session.next(), UnavailableError);
  await assert.rejects(other.stdin.write("x"), UnavailableError);
  await assert.rejects(box.run("true"), UnavailableError);
  await assert.rejects(runtime.close(), UnavailableError);
  await assert.rejects(runtime.list(), ClosedError);
  const again = await serve(host.directory);
  await using next = await Runtime.remote(again);
  const back = await next.get(box.id);
  assert.equal((await back.run("echo", "alive")).stdout, "alive\n");
  await back.remove();
  await again.stop();
});

test("a server that is killed in the middle of a stream ends it with an error on its socket too", async () => {
  const server = await serve(host.directory);
  const runtime = await Runtime.remote({ url: `unix://${host.directory}/sandbox.sock` });
  const box = await runtime.create("default", { network: "None" });
  const executions = await Promise.all([{}, { stdin_open: true }, { tty: true }].map((options) => box.exec(["sh", "-c", "echo a; exec sleep 100"], options)));
  for (const execution of executions) assert.equal((await execution[Symbol.asyncIterator]().next()).value!.data[0], 97);
  await server.stop("SIGKILL");
  for (const execution of executions) {
    for (let n = 0; n < 2; n++) await assert.rejects(execution[Symbol.asyncIterator]().next(), UnavailableError);
    await assert.rejects(execution.wait(), UnavailableError);
  }
  await runtime.close();
  const again = await serve(host.directory);
  await using next = await Runtime.remote(again);
  await next.remove(box.id, { force: true });
  await again.stop();
});

test("a stream goes on where it was when its connection is lost", async () => {
  const server = await serve(host.directory);
  const connections = new Set<Socket>();
  const between = createTcpServer((client) => { // a proxy whose connections can be cut
    const onward = connect(Number(new URL(server.url).port), "127.0.0.1");
    for (const [from, to] of [[client, onward], [onward, client]] as const) {
      connections.add(from);
      from.on("error", () => {}).on("close", () => to.destroy()).pipe(to);
    }
  }).listen(0, "127.0.0.1");
  await once(between, "listening");
  const runtime = await Runtime.remote({ ...server, url: `http://127.0.0.1:${(between.address() as AddressInfo).port}` });
  const box = await runtime.create("default", { network: "None" });
  const execution = await box.exec("sh", "-c", "echo before; while [ ! -e /tmp/go ]; do sleep 0.01; done; echo after");
  const events = execution[Symbol.asyncIterator]();
  assert.equal(new TextDecoder().decode((await events.next()).value!.data), "before\n");
  for (const connection of connections) connection.destroy();
  const next = events.next();
  await box.files.writeFile("/tmp/go", "");
  assert.equal(new TextDecoder().decode((await next).value!.data), "after\n");
  assert.equal((await events.next()).done, true);
  await runtime.close();
  between.close();
  for (const connection of connections) connection.destroy();
  await server.stop();
});
