package spool

import "sandbox/core"

// Record is what is known of an exec; its JSON is the contract's (section 3).
type Record struct {
	core.ExecRecord
	StdoutBytes int64 `json:"stdout_bytes"`
	StderrBytes int64 `json:"stderr_bytes"`
}

// written is a record on disk.
type written struct {
	Record
	Lost bool `json:"lost,omitempty"` // output at its end
}
