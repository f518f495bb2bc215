/**
 * Makes a box, runs a command in it and removes it, COUNT times, and prints what is left: memory, descriptors, boxes. Ends with 1 if
 * memory has grown by more than 5 MB, or something is left.
 *
 *   node --expose-gc --max-semi-space-size=1 cycles.js COUNT
 *
 * V8 lets the room for new objects grow to 48 MB, however few of them live (https://v8.dev/blog/trash-talk): held at its first
 * size, it leaves what this package and the library keep.
 */
import { readFileSync, readdirSync } from "node:fs";
import { Runtime } from "libsandbox";
import { home } from "../test/lib.js";

const count = Number(process.argv[2] ?? 300);
const host = home();

/** look returns resident memory in MB, and open descriptors. */
function look(): { memory: number; descriptors: number } {
  globalThis.gc!();
  globalThis.gc!();
  const pages = Number(readFileSync("/proc/self/statm", "utf8").split(" ")[1]);
  return { memory: pages * 4096 / 1e6, descriptors: readdirSync("/proc/self/fd").length };
}

const runtime = await Runtime.local();
const cycle = async () => {
  await using box = await runtime.create("default", { network: "None" });
  const { stdout } = await box.run("echo", "hello");
  if (stdout !== "hello\n") throw new Error(`the command printed ${JSON.stringify(stdout)}`);
};
for (let n = 0; n < count / 10; n++) await cycle(); // until the heaps of both runtimes have their size
const before = look();
for (let n = 0; n < count; n++) await cycle();
const after = look();
const boxes = (await runtime.list()).length;
await runtime.close();
await host.leave();
console.log(`${count} cycles: memory ${before.memory.toFixed(1)} MB, then ${after.memory.toFixed(1)} MB; descriptors ${before.descriptors}, then ${after.descriptors}; boxes ${boxes}`);
process.exitCode = Number(after.memory - before.memory > 5 || after.descriptors > before.descriptors || boxes > 0);
