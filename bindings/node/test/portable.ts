/** What runs in browsers and in Deno as it does in Node.js: it uses the remote half, and says what it saw. */
import { InvalidArgumentError, NotFoundError, Runtime, SandboxError, UnauthenticatedError, UnsupportedError } from "libsandbox/remote";

/** classOf returns the class of a failure. */
async function classOf(call: Promise<unknown>): Promise<string> {
  return call.then(() => "none", (failure: unknown) => failure instanceof SandboxError ? failure.name : String(failure));
}

/** look uses a server, and returns what a test compares. */
export async function look(url: string, apiKey: string): Promise<Record<string, unknown>> {
  const text = (data: Uint8Array) => new TextDecoder().decode(data);
  await using runtime = await Runtime.remote({ url, apiKey });
  await using box = await runtime.create("default", { network: "None" });
  const saw: Record<string, unknown> = {};

  saw["run"] = (await box.run(["sh", "-c", "cat; printf '\\377' >&2; exit 3"], { stdin: "input" })).stdout;
  const piped = await box.run("sh", "-c", "printf '\\377' >&2; exit 3");
  saw["bytes"] = [...piped.stderr_bytes, piped.exit_code];

  await using cat = await box.exec(["cat"], { stdin_open: true });
  await cat.stdin.write("typed");
  let back = "";
  for await (const { data } of cat) {
    back += text(data);
    await cat.stdin.close();
  }
  saw["attached"] = [back, (await cat.wait()).exit_code];

  await using shell = await box.terminal({ cols: 91, rows: 17 });
  await shell.stdin.write("stty size; exit\n");
  saw["terminal"] = (await shell.result()).stdout.includes("17 91");

  const random = crypto.getRandomValues(new Uint8Array(50_000));
  await box.files.writeFile("/tmp/file", random);
  saw["file"] = (await box.files.readFile("/tmp/file")).every((byte, i) => byte === random[i]);
  await using watch = await box.files.watch("/tmp");
  await box.files.makeDirectory("/tmp/made/deep");
  saw["watched"] = await watch.read();
  saw["moved"] = (await box.files.move("/tmp/made/deep", "/tmp/made/other")).name;
  const below: string[] = [];
  for await (const { path } of box.files.list("/tmp", { depth: 2 })) below.push(path);
  saw["below"] = below;
  saw["removed"] = (await box.files.remove("/tmp/made", { recursive: true })).removed;
  saw["exist"] = [await box.files.exists("/tmp/file"), await box.files.exists("/tmp/made"), (await box.files.stat("/tmp/file")).size];
  saw["list"] = (await runtime.list()).map((b) => b.id).includes(box.id);
  saw["failures"] = [
    await classOf(box.run(1 as never)), await classOf(runtime.get("none")), await classOf(box.files.copyIn("/a", "/b")),
    await classOf(runtime.images.pull("127.0.0.1:1/none:1")), await classOf((await Runtime.remote({ url, apiKey: "wrong" })).list()),
    await classOf(box.runCode("1", { language: "javascript" })), await classOf(box.contexts.interrupt("python")), (await box.contexts.list()).length, await classOf(box.connect(80)),
  ];
  return saw;
}

/** What look must return. */
export const wanted = {
  run: "input", bytes: [255, 3], attached: ["typed", 0], terminal: true, file: true,
  watched: { type: "create", path: "/tmp/made", directory: true }, moved: "other", below: ["/tmp/file", "/tmp/made", "/tmp/made/other"], removed: 2, exist: [true, false, 50_000], list: true,
  failures: [InvalidArgumentError.name, NotFoundError.name, UnsupportedError.name, "NetworkError", UnauthenticatedError.name, "ExecutionError", NotFoundError.name, 0, UnsupportedError.name],
};
