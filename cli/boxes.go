package cli

import (
	"context"
	"io"
	"time"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core/options"
)

// boxes is what verbs work on: the boxes of this host in process ([hostBoxes]),
// or those of a server ([serverBoxes]). ref is an id, a name or the beginning
// of an id. Failures are classified.
type boxes interface {
	CreateBox(ctx context.Context, o options.Box) (api.Box, error)
	Boxes(ctx context.Context, f client.Filter) ([]api.Box, error)
	Box(ctx context.Context, ref string) (api.Box, error)
	StartBox(ctx context.Context, ref string) (api.Box, error)
	StopBox(ctx context.Context, ref string, grace time.Duration) (api.Box, error)
	RemoveBox(ctx context.Context, ref string, force bool) (id string, err error)
	GC(ctx context.Context, olderThan time.Duration) (api.Collected, error)

	// StartExec starts a command that nobody is joined to.
	StartExec(ctx context.Context, ref string, o options.Exec) (api.Exec, error)
	Exec(ctx context.Context, ref, id string) (api.Exec, error)
	Execs(ctx context.Context, ref string) ([]api.Exec, error)
	// Run starts a command that we are joined to, and that ends with us.
	Run(ctx context.Context, ref string, o options.Exec) (command, error)
	// Join joins a command that runs. It goes on without us.
	Join(ctx context.Context, ref, id string) (command, error)
	// Shell starts a shell on a terminal. It ends with us.
	Shell(ctx context.Context, ref string, o client.TerminalOptions) (command, error)

	Upload(ctx context.Context, ref string, u client.Upload, content io.Reader) (api.Uploaded, error)
	Download(ctx context.Context, ref, path string, tar bool) (*client.Download, error)

	// Close removes what this command alone has made and kept for itself.
	Close(ctx context.Context) error
}

// command is a command of a box that we are joined to.
type command interface {
	// Input is the command's input, or nil. Closing it gives the command EOF.
	Input() io.WriteCloser
	// Stream hands all output to sink and gives the end of the command; it
	// ends early with an error of sink or ctx.
	Stream(ctx context.Context, sink func(stderr bool, p []byte) error) (api.ExitStatus, error)
	// Cancel ends the command: SIGTERM, and SIGKILL after grace.
	Cancel(ctx context.Context, grace time.Duration) error
	// Resize sets the size of its terminal.
	Resize(ctx context.Context, cols, rows int) error
	// Close leaves it.
	Close() error
}
