/** A program that closes a runtime while a call that makes something of it is on its way, and says how each call ends. */
import { Runtime, type Box } from "libsandbox";

const starts: [string, (runtime: Runtime, box: Box) => Promise<unknown>][] = [
  ["exec", (_, box) => box.exec("sleep", "100")],
  ["run", (_, box) => box.run("sleep", "100")],
  ["watch", (_, box) => box.files.watch("/tmp")],
  ["build", (runtime) => runtime.images.startBuild({ recipe: "FROM default\nRUN true\n" })],
];
for (const [what, start] of starts) {
  const runtime = await Runtime.local();
  const box = await runtime.create("default", { network: "None" });
  const started = start(runtime, box).then(() => "made", (failure: Error) => failure.name);
  const closing = runtime.close(); // behind the call: there is one thread
  console.log(what, await started);
  await closing;
}
