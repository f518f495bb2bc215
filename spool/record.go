package spool

import (
	"time"

	"sandbox/api"
)

// written is a record on disk.
type written struct {
	api.Exec
	Lost bool `json:"lost,omitempty"` // output at its end
}

// Place is where an exec stands among those of its box.
type Place struct {
	ID        string
	CreatedAt time.Time
}

func placeOf(e api.Exec) Place { return Place{e.ID, e.CreatedAt} }

// counted returns the record with how much there is of each stream.
func counted(e api.Exec, sizes mark) api.Exec {
	e.StdoutBytes, e.StderrBytes = &sizes[Stdout], &sizes[Stderr]
	return e
}
