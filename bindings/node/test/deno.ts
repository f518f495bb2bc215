/** A program for Deno: it looks at the server of its arguments, as the test of browsers does, and prints what it saw. */
import { look } from "./portable.js";

const { Deno } = globalThis as unknown as { Deno: { args: [string, string] } };
console.log(JSON.stringify(await look(...Deno.args)));
