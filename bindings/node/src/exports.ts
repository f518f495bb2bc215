export * from "./contract.js";
export { ClosedError, LibraryError } from "./own.js";
export { SandboxError, type Details } from "./failure.js";
export type { BoxChanges, Command, CreateOptions, ExecOptions, Progress, RemoteOptions } from "./options.js";
export { Box, type TerminalOptions } from "./box.js";
export { Execution, maxResult, type Exit, type Input, type Output, type Result } from "./execution.js";
export { Watch, type ByUser, type Files } from "./files.js";
export type { Images } from "./runtime.js";
