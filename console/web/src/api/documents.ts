/** The documents of the server: those of the contract as the Node.js package has them, and those of the console and the logs. */
import type { Identity } from "../../../../bindings/node/src/contract.js";

export type {
  BoxInfo,
  BoxMetrics,
  BoxStatus,
  ExecInfo,
  ExitEvent,
  FileInfo,
  FilePage,
  Gap,
  Identity,
  Image,
  Key,
  Log,
  Permission,
  Port,
  Reason,
  ServerInfo,
  Share,
  Volume,
} from "../../../../bindings/node/src/contract.js";

/** Session is what GET /ui/session says of the session that the cookie names. */
export interface Session {
  principal: Identity;
  csrf: string;
  created_at: string;
  expires_at: string;
  idle_seconds: number;
  version: string;
  /** the path of the API, and that of boxes, which may have a prefix */
  base: string;
  boxes: string;
}

/** FieldProblem is what is wrong with one member of a document. */
export interface FieldProblem {
  field: string;
  code: string;
  message: string;
}

/** The parts of a failure of either form: that of the API, and that of log queries. */
export interface FailureDocument {
  error?: { code: string; message: string; request_id?: string; fields?: FieldProblem[] };
  code?: string;
  title?: string;
  message?: string;
  correlationId?: string;
  prerequisite?: string;
  fields?: FieldProblem[];
}

/** Column is a column of the answer to a query. */
export interface Column {
  name: string;
  type: string;
}

/** Row is a row of such an answer. Integers of 64 bits are strings. */
export type Row = Record<string, unknown>;

/** QueryResult is the answer to a query. */
export interface QueryResult {
  queryId: string;
  columns: Column[];
  rows: Row[];
  statistics: { elapsedMs: number; readRows: string; readBytes: string };
}

/** LogFilter is what a search and an aggregate look for. */
export interface LogFilter {
  from: string;
  to: string;
  service?: string;
  severity?: string;
  text?: string;
  traceId?: string;
  limit?: number;
}
