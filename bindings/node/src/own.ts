import { EngineError, InvalidArgumentError } from "./contract.js";

/** What is used was closed. */
export class ClosedError extends InvalidArgumentError {
  override readonly name: string = "ClosedError";

  constructor(what: string) {
    super(`this ${what} was closed`);
  }
}

/** libsandbox.so is missing, can't be loaded, or is of another version. */
export class LibraryError extends EngineError {
  override readonly name: string = "LibraryError";
}
