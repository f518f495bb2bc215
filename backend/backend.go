// Package backend works on boxes wherever they are: those of this host, in process
// ([OnHost]), or those of a server ([OnServer]). A [Target] says which. The command
// line and the C library stand on it.
package backend

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core"
	"sandbox/core/code"
	"sandbox/core/image"
	"sandbox/core/options"
)

// Boxes are the boxes and images of one place. ref is an id, a name or the beginning
// of an id. Failures are classified. It is safe for concurrent use.
type Boxes interface {
	CreateBox(ctx context.Context, o options.Box) (api.Box, error)
	Boxes(ctx context.Context, f client.Filter) ([]api.Box, error)
	Box(ctx context.Context, ref string) (api.Box, error)
	BoxMetrics(ctx context.Context, ref string) (api.BoxMetrics, error)
	// BoxSeries returns what a box used over time. Errors: Unsupported (in process).
	BoxSeries(ctx context.Context, ref string, s client.Series) (api.BoxSeries, error)
	StartBox(ctx context.Context, ref string) (api.Box, error)
	StopBox(ctx context.Context, ref string, grace time.Duration) (api.Box, error)
	// PauseBox has the processes of a box stand still, until ResumeBox.
	PauseBox(ctx context.Context, ref string, reclaim bool) (api.Box, error)
	ResumeBox(ctx context.Context, ref string) (api.Box, error)
	// UpdateBox changes options of a box, which have passed their Check.
	UpdateBox(ctx context.Context, ref string, u options.Update) (api.Box, error)
	RemoveBox(ctx context.Context, ref string, force bool) (id string, err error)

	// SnapshotBox makes an image of the disk of a box; name is its name, or "".
	SnapshotBox(ctx context.Context, ref, name string) (api.Snapshot, error)
	// RollbackBox gives a box the disk of a snapshot of it.
	RollbackBox(ctx context.Context, ref, snapshot string) (api.Box, error)
	// CloneBox makes boxes that are like a box. If one can't be made, none is.
	CloneBox(ctx context.Context, ref string, o options.Clone) ([]api.Box, error)
	// DiffBox returns a page of what has changed on the disk of a box.
	DiffBox(ctx context.Context, ref string, o options.Diff) (api.Changes, error)
	// Snapshots returns the snapshots of a box, or of all boxes for "".
	Snapshots(ctx context.Context, box string) ([]api.SnapshotNode, error)
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
	// BuildImage makes an image of a recipe; see [build.Builder.Build].
	BuildImage(ctx context.Context, o BuildOptions) (api.Image, error)
	// ExportImage writes an image of the store to w, as the tar of an OCI
	// layout; see [image.Store.Export].
	ExportImage(ctx context.Context, ref string, w io.Writer, o image.ExportOptions) error
	// PushImage sends an image of the store to a registry.
	PushImage(ctx context.Context, ref string, o image.PushOptions) (api.Pushed, error)

	// StartExec starts a command and does not join it.
	StartExec(ctx context.Context, ref string, o options.Exec) (api.Exec, error)
	Exec(ctx context.Context, ref, id string) (api.Exec, error)
	Execs(ctx context.Context, ref string) ([]api.Exec, error)
	// CancelExec ends a command: SIGTERM, and SIGKILL after grace.
	CancelExec(ctx context.Context, ref, id string, grace time.Duration) (api.Exec, error)
	// Signal sends a signal to the own process of a command.
	Signal(ctx context.Context, ref, id string, sig unix.Signal) error
	// Run starts a command and joins it.
	Run(ctx context.Context, ref string, o options.Exec) (Command, error)
	// Join joins a running command. With resume it goes on where who left it last
	// was; else it begins with the oldest output that there is.
	Join(ctx context.Context, ref, id string, resume bool) (Command, error)
	// Observe joins a running command only to read its output, beside the one who
	// has joined it. Its Reader also fails with [client.Missed], and then goes on.
	// Errors: Unsupported (in process).
	Observe(ctx context.Context, ref, id string) (Command, error)
	// Shell starts a shell on a terminal and joins it. The shell ends with us.
	Shell(ctx context.Context, ref string, o client.TerminalOptions) (Command, error)

	Upload(ctx context.Context, ref string, u client.Upload, content io.Reader) (api.Uploaded, error)
	Download(ctx context.Context, ref string, o options.Download) (*client.Download, error)
	StatFile(ctx context.Context, ref string, o options.StatFile) (api.File, error)
	ListFiles(ctx context.Context, ref string, o options.ListFiles) (api.Files, error)
	MakeDirectory(ctx context.Context, ref string, o options.MakeDirectory) (api.MadeDirectory, error)
	MoveFile(ctx context.Context, ref string, o options.MoveFile) (api.File, error)
	RemoveFile(ctx context.Context, ref string, o options.RemoveFile) (api.RemovedFiles, error)
	// WatchFiles begins to watch a directory. The watch ends with ctx, or when its
	// owner closes it.
	WatchFiles(ctx context.Context, ref string, o options.WatchFiles) (*core.FileWatch, error)

	// Connect connects to a TCP port of a box. The connection has CloseWrite too, and
	// its owner closes it. ctx bounds the connecting alone.
	Connect(ctx context.Context, ref string, port int) (net.Conn, error)

	// Share makes a link to a TCP port of a box for people without a key, for a time
	// of whole seconds; 0 is the server's default. Errors: Unsupported (in process).
	Share(ctx context.Context, ref string, port int, d time.Duration) (api.Share, error)

	// RunCode runs code in a context of a box. It returns once the code runs, and
	// waits for the runs in the same context that were asked for before. The caller
	// closes the run, which interrupts code that still runs.
	RunCode(ctx context.Context, ref string, o options.Code) (*code.Run, error)
	CreateCodeContext(ctx context.Context, ref string, o options.CodeContext) (api.CodeContext, error)
	// CodeContexts returns the contexts of a box, newest first.
	CodeContexts(ctx context.Context, ref string) ([]api.CodeContext, error)
	CodeContext(ctx context.Context, ref, id string) (api.CodeContext, error)
	// InterruptCode sends SIGINT to the code that a context runs.
	InterruptCode(ctx context.Context, ref, id string) (api.CodeContext, error)
	// RestartCodeContext has a context forget what code has defined in it.
	RestartCodeContext(ctx context.Context, ref, id string) (api.CodeContext, error)
	RemoveCodeContext(ctx context.Context, ref, id string) error

	// Metrics returns what was counted since the boxes were opened, and how many
	// of them run, whoever made them.
	Metrics(ctx context.Context) (api.RuntimeMetrics, error)
	// Shutdown stops the boxes that were made here, all at once, and has creates
	// and starts fail with Stopped. A second call does nothing.
	Shutdown(ctx context.Context, grace time.Duration) error
	// Keep has the boxes go on that would end with Close. Errors: InvalidState
	// (they can't).
	Keep() error
	// Close ends the use of the boxes. It removes those with auto_remove that were
	// made here, if they are owned.
	Close(ctx context.Context) error
}

// Command is a command in a box that we have joined. One goroutine reads its output;
// the other methods may be called at the same time.
type Command interface {
	// ID returns the id of the exec.
	ID() string
	// Input returns the command's input, or nil if it has none. Closing it
	// means end of file for the command. Errors of a write: InvalidState (the
	// input was closed).
	Input() io.WriteCloser
	// Reader returns a reader of the output, which its owner closes. The end of
	// ctx ends a read.
	Reader(ctx context.Context) (Reader, error)
	// FD returns a descriptor of one stream, which does not block and lives as
	// long as the Command. Who reads by descriptors uses no Reader before the
	// command has ended. Errors: InvalidState (there is no such stream),
	// InvalidArgument.
	FD(stream Stream) (int, error)
	// Cancel ends the command: SIGTERM, and SIGKILL after grace. Errors:
	// InvalidState (it has ended).
	Cancel(ctx context.Context, grace time.Duration) error
	// Signal sends a signal to the command's own process. Errors: InvalidState.
	Signal(ctx context.Context, sig unix.Signal) error
	// Resize sets the size of the command's terminal. Errors: InvalidState (it
	// has none).
	Resize(ctx context.Context, cols, rows int) error
	// Detach leaves the command running, whatever Close would do, for a later
	// Join. The Reader returns ErrDetached then.
	Detach() error
	// Unread says what becomes of the output while nobody has joined the command,
	// if that is worth telling.
	Unread() string
	// Close ends our use of the command, and a shell.
	Close() error
}

// Reader reads the output of a command piece by piece, as a [core.Reader] does.
type Reader interface {
	// Read fails also with ErrDetached, and with Unavailable (the connection to
	// the server was lost).
	core.Pieces
	// Drain drops the output that has not been read, and waits for the end.
	Drain() error
	Close()
}

// drain reads and drops output until the end of the command. What else has been dropped
// is as good.
func drain(r core.Pieces) error {
	err := error(client.Missed{})
	for errors.As(err, &client.Missed{}) {
		_, err = core.Pass(r, make([]byte, core.OutputBuffer), func(bool, []byte) error { return nil })
	}
	return err
}

// ErrDetached is what a Reader returns after Detach.
var ErrDetached = client.ErrDetached

// Stream is a stream of a command.
type Stream int

// The streams of a command. Exit has a descriptor alone, which becomes readable
// when the command has ended.
const (
	Stdin Stream = iota
	Stdout
	Stderr
	Exit
)

// Pass passes all output of a command to sink, and returns how the command ended. It
// reads into buf; p is valid until sink returns. It returns early with an error of
// sink or ctx.
func Pass(ctx context.Context, c Command, buf []byte, sink func(stderr bool, p []byte) error) (api.ExitStatus, error) {
	r, err := c.Reader(ctx)
	if err != nil {
		return api.ExitStatus{}, err
	}
	defer r.Close()
	return core.Pass(r, buf, sink)
}
