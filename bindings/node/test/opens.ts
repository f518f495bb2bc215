/** A program that says how the library can't be opened. */
import { Runtime, SandboxError } from "libsandbox";

await Runtime.local().catch((failure: SandboxError) => console.log(failure.name, failure.message));
