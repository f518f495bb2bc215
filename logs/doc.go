// Package logs answers read-only queries over the table otel.otel_logs. It
// reads the documents of the four operations, checks whether a statement is
// allowed, queries the engine within a budget, and returns either a whole
// result or a failure of package fault. It knows nothing of HTTP.
package logs
