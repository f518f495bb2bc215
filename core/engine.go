package core

import (
	"context"
	"os"
	"time"

	"sandbox/core/options"
)

// Engine makes boxes and runs commands in them. It owns the truth about its
// boxes: the records it gives are what is, also after a crash of this process.
// An Engine is safe for concurrent use and answers with classified failures.
type Engine interface {
	// Create makes a box and starts it. Nothing is left of it on failure:
	// AlreadyExists (name), ResourceExhausted, Engine, Storage, Unsupported,
	// InvalidArgument (root file system).
	Create(ctx context.Context, req CreateRequest) (Record, error)
	// Start starts a stopped box: BoxNotFound, InvalidState.
	Start(ctx context.Context, id string) (Record, error)
	// Stop ends a running box: SIGTERM to all its processes, SIGKILL to
	// what is left after grace. Its record comes back also when
	// auto_remove removed the box: BoxNotFound, InvalidState.
	Stop(ctx context.Context, id string, grace time.Duration) (Record, error)
	// Remove removes a box; a running one only with force: BoxNotFound,
	// InvalidState.
	Remove(ctx context.Context, id string, force bool) error
	// List gives all boxes, newest first.
	List(ctx context.Context) ([]Record, error)
	// Get gives one box by its full id: BoxNotFound.
	Get(ctx context.Context, id string) (Record, error)
	// Exec starts a command in a running box: BoxNotFound, InvalidState,
	// Engine. A command that can't be started is a Process that has ended.
	Exec(ctx context.Context, id string, opts options.Exec) (*Process, error)
	// Usage measures a box: BoxNotFound.
	Usage(ctx context.Context, id string) (Usage, error)
	// Close ends this process's use of the engine. Boxes live on.
	Close() error
}

// CreateRequest is a box as the engine gets it: the image is already resolved.
type CreateRequest struct {
	ID      string
	Options options.Box
	Image   Image // of Options.Image; with RootfsPath only Layers is set
	// Owned ties an auto_remove box to this process: it is stopped and
	// removed when the process ends, however it ends.
	Owned bool
}

// Images finds the images that boxes start from.
type Images interface {
	// Resolve gives the image that ref names: fault.Image when it is not
	// in the store, saying how to get it there.
	Resolve(ctx context.Context, ref string) (Image, error)
}

// Image is an unpacked image.
type Image struct {
	Ref        string   `json:"ref,omitempty"`
	ID         string   `json:"id,omitempty"` // sha256:...
	Layers     []string `json:"layers"`       // absolute folders, lowest first
	Env        []string `json:"env,omitempty"`
	WorkingDir string   `json:"working_dir,omitempty"`
	User       string   `json:"user,omitempty"`
}

// Usage is what a box has used since it was started.
type Usage struct {
	CPU         time.Duration
	MemoryBytes int64
	Commands    int64 // execs asked for
	ExecErrors  int64 // execs that could not be started
}

// Process is a command that an engine has started. The descriptors belong to
// whoever holds the Process; Control.Release ends it.
type Process struct {
	ID     string
	PID    int
	Stdin  *os.File // nil unless asked for; the terminal with TTY
	Stdout *os.File // the terminal with TTY
	Stderr *os.File // nil with TTY
	Control
}

// Control is the engine's side of a Process.
type Control interface {
	// ExitFD is a descriptor that polls readable once Exit has its answer.
	ExitFD() int
	// Exit gives the end of the command's own process, once ExitFD is
	// readable. Called by one goroutine at a time.
	Exit() (ExecStatus, error)
	// Signal sends sig to the command's own process; InvalidState when it
	// has ended.
	Signal(ctx context.Context, sig int) error
	// Cancel sends SIGTERM to the command's whole process tree, SIGKILL
	// after grace.
	Cancel(ctx context.Context, grace time.Duration) error
	// Resize sets the size of the terminal.
	Resize(ctx context.Context, cols, rows int) error
	// Release gives the command up: output that is still to come is
	// dropped, the descriptors are closed. The command is not ended.
	Release() error
}
