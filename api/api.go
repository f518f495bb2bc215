// Package api holds the documents and the words of the contract, each of them
// once: what the core answers, what the service sends, what the client and the
// command line read, and what a box's init says of its commands.
//
// Its types are plain data, whose JSON is the contract's. A pointer is nil
// where the JSON is null. The package imports the standard library and
// core/fault alone, for it is part of the small program that is PID 1 of each
// box.
package api

import "sandbox/core/fault"

// Failure is a failure that a document keeps.
type Failure struct {
	Code    fault.Kind `json:"code"`
	Message string     `json:"message"`
}
