// Package protocol has the messages that E2B's SDKs exchange with a box. Its .proto
// files are this project's own, of names and numbers that the protocol has; the Go
// files beside them are generated from these.
package protocol
