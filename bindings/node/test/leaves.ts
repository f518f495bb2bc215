/** A program that makes a box, names it, and when it is told to ends as HOW says. */
import { once } from "node:events";
import { Runtime } from "libsandbox";

const runtime = await Runtime.open();
const box = await runtime.create("default", { network: "None" });
console.log(box.id);
const how = process.env["HOW"];
if (how === "runs") await box.run("sleep", "100"); // lasts longer than the test
await once(process.stdin, "data");
process.stdin.destroy();
if (how === "exits") process.exit(3);
if (how === "throws") throw new Error("on purpose: a test wants it");
