package cli

import (
	"context"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core/options"
)

// boxes are the boxes that a verb works on: those of this host, in process
// ([hostBoxes]), or those of a server ([serverBoxes]). ref is an id, a name or the
// beginning of an id. Failures are classified.
type boxes interface {
	CreateBox(ctx context.Context, o options.Box) (api.Box, error)
	Boxes(ctx context.Context, f client.Filter) ([]api.Box, error)
	Box(ctx context.Context, ref string) (api.Box, error)
	BoxMetrics(ctx context.Context, ref string) (api.BoxMetrics, error)
	StartBox(ctx context.Context, ref string) (api.Box, error)
	StopBox(ctx context.Context, ref string, grace time.Duration) (api.Box, error)
	RemoveBox(ctx context.Context, ref string, force bool) (id string, err error)
	GC(ctx context.Context, olderThan time.Duration) (api.Collected, error)

	// ImageCommand returns the command that an image has of its own. It pulls
	// the image as CreateBox does. Errors: InvalidArgument (it has none).
	ImageCommand(ctx context.Context, image string, progress func(api.ImageProgress)) ([]string, error)
	Images(ctx context.Context) ([]api.Image, error)
	Image(ctx context.Context, ref string) (api.Image, error)
	Pull(ctx context.Context, ref string, progress func(api.ImageProgress)) (api.Image, error)
	// RemoveImage removes an image; with force also one that is in use.
	RemoveImage(ctx context.Context, ref string, force bool) error
	// ImportImage makes an image of a directory or an archive of this host.
	ImportImage(ctx context.Context, name, source string, progress func(api.ImageProgress)) (api.Image, error)

	// StartExec starts a command and does not join it.
	StartExec(ctx context.Context, ref string, o options.Exec) (api.Exec, error)
	Exec(ctx context.Context, ref, id string) (api.Exec, error)
	Execs(ctx context.Context, ref string) ([]api.Exec, error)
	// CancelExec ends a command: SIGTERM, and SIGKILL after grace.
	CancelExec(ctx context.Context, ref, id string, grace time.Duration) (api.Exec, error)
	// Signal sends a signal to the own process of a command.
	Signal(ctx context.Context, ref, id string, sig unix.Signal) error
	// Run starts a command and joins it. The command ends with us.
	Run(ctx context.Context, ref string, o options.Exec) (command, error)
	// Join joins a running command, which goes on without us. One with a terminal
	// goes on where who left it last was.
	Join(ctx context.Context, ref, id string, tty bool) (command, error)
	// Shell starts a shell on a terminal and joins it. The shell ends with us.
	Shell(ctx context.Context, ref string, o client.TerminalOptions) (command, error)

	Upload(ctx context.Context, ref string, u client.Upload, content io.Reader) (api.Uploaded, error)
	Download(ctx context.Context, ref, path string, tar bool) (*client.Download, error)

	// Keep has the boxes go on that would end with this run of the command line.
	// Errors: InvalidState (they can't).
	Keep() error
	// Close removes the boxes that end with this run of the command line.
	Close(ctx context.Context) error
}

// command is a command in a box that we have joined.
type command interface {
	// Input returns the command's input, or nil if it has none. Closing it
	// means end of file for the command.
	Input() io.WriteCloser
	// Stream passes all output to sink and returns how the command ended. It
	// returns early with an error of sink or ctx.
	Stream(ctx context.Context, sink func(stderr bool, p []byte) error) (api.ExitStatus, error)
	// Cancel ends the command: SIGTERM, and SIGKILL after grace.
	Cancel(ctx context.Context, grace time.Duration) error
	// Resize sets the size of the command's terminal.
	Resize(ctx context.Context, cols, rows int) error
	// ID returns the id of the exec.
	ID() string
	// Detach leaves the command running, whatever Close would do. Stream returns
	// errDetached then.
	Detach() error
	// Unread says what becomes of the output while nobody has joined the command,
	// if that is worth telling.
	Unread() string
	// Close ends our use of the command, and the command if it was to end
	// with us.
	Close() error
}
