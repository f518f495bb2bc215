package spool

import (
	"time"

	"sandbox/api"
)

// written is the record of an exec on disk.
type written struct {
	api.Exec
	Lost bool `json:"lost,omitempty"` // some output at the end was lost
}

// Place is the position of an exec among those of its box.
type Place struct {
	ID        string
	CreatedAt time.Time
}

func placeOf(e api.Exec) Place { return Place{e.ID, e.CreatedAt} }

// counted returns the record with the sizes of both streams filled in.
func counted(e api.Exec, sizes mark) api.Exec {
	e.StdoutBytes, e.StderrBytes = &sizes[Stdout], &sizes[Stderr]
	return e
}
