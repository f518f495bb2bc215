package spool

import (
	"time"

	"sandbox/core"
)

// Record is what is known of an exec; its JSON is the contract's (section 3).
type Record struct {
	core.ExecRecord
	StdoutBytes *int64 `json:"stdout_bytes"` // null where the output is not spooled
	StderrBytes *int64 `json:"stderr_bytes"`
}

// written is a record on disk.
type written struct {
	Record
	Lost bool `json:"lost,omitempty"` // output at its end
}

// Place is where an exec stands among those of its box.
type Place struct {
	ID        string
	CreatedAt time.Time
}

func (r *Record) place() Place { return Place{r.ID, r.CreatedAt} }

// count puts into the record how much there is of each stream.
func (r *Record) count(sizes mark) {
	r.StdoutBytes, r.StderrBytes = &sizes[Stdout], &sizes[Stderr]
}
