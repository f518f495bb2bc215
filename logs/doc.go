// Package logs answers read-only queries over the table otel.otel_logs: it
// reads the documents of the four operations, lets a statement through or
// not, asks the engine within a budget, and returns a whole result or a
// failure of package fault. It knows nothing of HTTP.
package logs
