// Runs code cell by cell, as a notebook does: the context of the box keeps what the cells define.
import { Sandbox } from "libsandbox";

await using box = await Sandbox.create("python:3.12", { network: "None" });
await box.runCode("squares = [n * n for n in range(5)]");
console.log((await box.runCode("sum(squares)")).text); // 30
const { status, error } = await box.runCode("squares[5]");
console.log(status, error?.name); // failed IndexError

await using run = await box.startCode("for s in squares: print(s, flush=True)");
for await (const event of run) {
  if (event.type === "stdout") process.stdout.write(event.text!); // 0, 1, 4, 9, 16
}
