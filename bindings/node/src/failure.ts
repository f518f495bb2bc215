/** What a failure carries beside its message. */
export interface Details {
  /** The code of the server's reply, such as "box_not_found". It is finer than `code`. */
  kind?: string | undefined;
  /** What the server's log calls the request. */
  request_id?: string | undefined;
  /** Each member of a document that is wrong. */
  fields?: { field: string; code: string; message: string }[] | undefined;
  /** What the command would have ended with: 127 or 126 if it could not be started. */
  exit_code?: number | undefined;
  /** Seconds after which the server wants to be asked again. */
  retry_after?: number | undefined;
  cause?: unknown;
}

/** The class of all failures of this package. Its subclasses say what a caller can do. */
export abstract class SandboxError extends Error {
  /** The class as a word, such as "not_found". */
  abstract readonly code: string;
  /** The class as the C library's number. */
  abstract readonly number: number;
  readonly kind: string | undefined;
  readonly request_id: string | undefined;
  readonly fields: { field: string; code: string; message: string }[];
  readonly exit_code: number | undefined;
  readonly retry_after: number | undefined;

  constructor(message: string, details: Details = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.kind = details.kind;
    this.request_id = details.request_id;
    this.fields = details.fields ?? [];
    this.exit_code = details.exit_code;
    this.retry_after = details.retry_after;
  }
}
