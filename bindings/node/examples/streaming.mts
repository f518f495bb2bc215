// Reads a command's output while it runs, and writes to it.
import { Sandbox } from "libsandbox";

await using box = await Sandbox.create("python:3.12");
await using python = await box.exec(["python3", "-u", "-c", "for line in open(0): print(int(line) ** 2)"], { stdin_open: true });
await python.stdin.write("12\n");
for await (const { stream, data } of python) {
  process[stream].write(data); // 144
  await python.stdin.close();
}
console.log(await python.wait()); // { exit_code: 0, signal: null }
