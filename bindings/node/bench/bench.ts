/**
 * Measures the package beside C in one run, round by round: what an exec costs from each, and how fast 1 GiB of output comes.
 * `stream`, the program in C, is that of the project's own benchmarks. Prints a table; ends with 1 if a bar is missed.
 *
 *   node bench.js ROUNDS
 */
import { spawn } from "node:child_process";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Runtime, type Box } from "libsandbox";
import { home, project } from "../test/lib.js";

const rounds = Math.max(30, Number(process.argv[2] ?? 30));
const giga = 1 << 30;
const host = home();
copyFileSync(join(project, "build/bench/text"), join(host.rootfs, "bin/text"));

/** inC starts the program in C, and returns a function that has it run its command once: milliseconds. */
async function inC(...command: [string, string]): Promise<{ run(): Promise<number>; end(): void }> {
  const program = spawn(join(project, "build/bench/stream"), [host.directory, host.rootfs, ...command], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface(program.stdout)[Symbol.asyncIterator]();
  await lines.next(); // ready
  return {
    async run() {
      program.stdin.write("\n");
      const { value } = await lines.next();
      return Number(String(value).split(" ")[0]) / 1e6;
    },
    end: () => program.stdin.end(),
  };
}

/** inNode runs a command to its end, reads its output, and returns milliseconds. */
async function inNode(box: Box, ...command: string[]): Promise<number> {
  const begun = performance.now();
  await using execution = await box.exec(...command);
  let bytes = 0;
  for await (const { data } of execution) bytes += data.length;
  await execution.wait();
  if (bytes === 0) throw new Error("no output came");
  return performance.now() - begun;
}

/** compare measures one after the other, and then the other way round. */
async function compare(box: Box, count: number, ...command: [string, string]): Promise<{ c: number[]; node: number[] }> {
  const c = await inC(...command);
  const times = { c: [] as number[], node: [] as number[] };
  for (let n = -3; n < count; n++) { // the first three are not counted
    const one = async () => { const t = await c.run(); if (n >= 0) times.c.push(t); };
    const other = async () => { const t = await inNode(box, ...command); if (n >= 0) times.node.push(t); };
    for (const measure of n % 2 ? [one, other] : [other, one]) await measure();
  }
  c.end();
  return times;
}

const at = (times: number[], share: number) => [...times].sort((a, b) => a - b)[Math.floor(times.length * share)]!;

const runtime = await Runtime.local();
const box = await runtime.create(null, { rootfs_path: host.rootfs, cpus: 1 });
const exec = await compare(box, 4 * rounds, "/bin/echo", "hello");
const overhead = at(exec.node, 0.5) - at(exec.c, 0.5);
console.log(`exec, ms, p50 / p99     C ${at(exec.c, 0.5).toFixed(2)} / ${at(exec.c, 0.99).toFixed(2)}   Node.js ${at(exec.node, 0.5).toFixed(2)} / ${at(exec.node, 0.99).toFixed(2)}`);
console.log(`exec, overhead, ms      ${overhead.toFixed(2)}   bar 0.30`);
const gib = await compare(box, rounds, "/bin/text", String(giga));
await runtime.close();
await host.leave();

const rates = { c: giga / at(gib.c, 0.5) / 1e6, node: giga / at(gib.node, 0.5) / 1e6 };
console.log(`1 GiB, GB/s, p50        C ${rates.c.toFixed(2)}   Node.js ${rates.node.toFixed(2)}   bars 1.00 and ${(0.6 * rates.c).toFixed(2)}`);
process.exitCode = Number(overhead > 0.3 || rates.node < 1 || rates.node < 0.6 * rates.c);
