package core

import (
	"context"
	"io"
	"os"
	"time"

	"sandbox/api"
	"sandbox/core/options"
)

// Engine makes boxes and runs commands in them. It owns the truth about its
// boxes: the records it gives are what is, also after a crash of this process.
// An Engine is safe for concurrent use and answers with classified failures.
type Engine interface {
	Boxes
	Execs
	Files
	// Close ends this process's use of the engine. Boxes live on.
	Close() error
}

// Boxes is the part of an [Engine] that makes and ends boxes.
type Boxes interface {
	// Create makes a box and starts it. Nothing is left of it on failure:
	// AlreadyExists (name), PortInUse, InvalidArgument (root file system, a
	// volume, a port), PermissionDenied (a path that leads out of its host
	// root), ResourceExhausted, Unsupported, Upstream (network), Engine,
	// Storage.
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
	// List returns all boxes, newest first. The slice may be another caller's
	// too: it is not to be changed.
	List(ctx context.Context) ([]Record, error)
	// Get returns one box by its full id: BoxNotFound.
	Get(ctx context.Context, id string) (Record, error)
	// Usage measures a box: BoxNotFound.
	Usage(ctx context.Context, id string) (Usage, error)
	// Sweep removes the boxes that have been stopped or failed for at least
	// olderThan, and what a crash left. What it could do comes back also
	// when something failed.
	Sweep(ctx context.Context, olderThan time.Duration) (Swept, error)
}

// Execs is the part of an [Engine] that runs commands in boxes. All of it
// fails with BoxNotFound, InvalidState (the box does not run) and Engine; what
// names an exec also with ExecNotFound.
type Execs interface {
	// Exec starts a command. One that can't be started is a Process that
	// has ended.
	Exec(ctx context.Context, boxID string, opts options.Exec) (*Process, error)
	// Attach takes over an exec whose reader has gone without a Release: by a
	// Detach, or its own end. InvalidState while another one reads it, and
	// after a Release. One that has ended still gives its output and end.
	Attach(ctx context.Context, boxID, execID string) (*Process, error)
	// Execs returns the last 1,024 execs, newest first, without their
	// environment.
	Execs(ctx context.Context, boxID string) ([]api.Exec, error)
	// FindExec returns one exec.
	FindExec(ctx context.Context, boxID, execID string) (api.Exec, error)
	// AwaitExec waits for the end of an exec, whoever reads its output. One
	// whose box's init died meanwhile comes back as lost.
	AwaitExec(ctx context.Context, boxID, execID string) (api.Exec, error)
	// CancelExec sends SIGTERM to the exec's whole process tree, SIGKILL
	// after grace, and waits for its end: InvalidState when it has ended.
	CancelExec(ctx context.Context, boxID, execID string, grace time.Duration) (api.Exec, error)
}

// Files is the part of an [Engine] that moves files in and out of running
// boxes. A path is resolved inside the box, with the rights of the box's root,
// and leads nowhere else. Errors: BoxNotFound, InvalidState, Engine,
// FileNotFound, IsDirectory, InvalidArgument, Storage (the box's disk).
type Files interface {
	// Upload makes a file, or the files of a tar, of what content holds up
	// to EOF. A failure of content's own comes back as it is.
	Upload(ctx context.Context, boxID string, u Upload, content io.Reader) (api.Uploaded, error)
	// Download opens a file of a box, or a directory as a tar.
	Download(ctx context.Context, boxID, path string, asTar bool) (*Download, error)
}

// Upload says where content goes in a box.
type Upload struct {
	// Dest is absolute. When it ends in "/" or is a directory, the file keeps
	// its Name in it. Directories that are missing are made. A file that is
	// there is replaced in one step, and only by all of the content; its
	// owner stays, and its mode where none is given. A link that is there is
	// replaced and not followed. A new file is the box's root's.
	Dest string `json:"dest"`
	Name string `json:"name,omitempty"` // one element of a path
	Mode *int   `json:"mode,omitempty"` // permission bits, up to 07777; else 0644
	// LateMode returns the mode where it is known only behind the content. It is
	// called once, when all of the content has been read; nil leaves Mode. May be
	// nil. A tar has no use for it.
	LateMode func() *int `json:"-"`
	// Tar says that the content is a tar, whose entries go into the directory
	// Dest. Its owners are left out: all is the box's root's.
	Tar bool `json:"tar,omitempty"`
}

// Download is a file that streams out of a box. It is read by one goroutine
// and has to be closed. A file that turns out shorter than Size ends as an
// error instead of EOF, and so does a tar that is not whole; of a file that
// grows meanwhile the first Size bytes come.
type Download struct {
	io.ReadCloser
	Name string // last element of the path
	Size int64  // -1 for a tar
}

// Swept is what a sweep removed.
type Swept struct {
	Boxes []string // ids
	Bytes int64    // that their disks held
}

// CreateRequest is a box as the engine gets it: its image is in the store.
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
	// Resolve returns the image that ref names, and pulls one that is not in
	// the store. Errors: Image (it can't be pulled or read), Storage, and
	// what ended ctx.
	Resolve(ctx context.Context, ref string) (Image, error)
}

// Image is an unpacked image.
type Image struct {
	Ref        string   `json:"ref,omitempty"`
	ID         string   `json:"id,omitempty"` // sha256:...
	Layers     []string `json:"layers"`       // absolute directories, lowest first
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
	// Network is what has passed the box's interface, nil when that is
	// unknown: while the box does not run.
	Network *Traffic
}

// Traffic is bytes that a box sent and got, headers included.
type Traffic struct{ Sent, Received int64 }

// Process is a command that an engine has started. The descriptors belong to
// whoever holds the Process; Control.Release ends it. The pipes don't
// block: a read of an empty one is EAGAIN.
type Process struct {
	Record api.Exec // as it started
	Stdin  *os.File // nil unless asked for; the terminal with TTY
	Stdout *os.File // the terminal with TTY
	Stderr *os.File // nil with TTY
	Control
}

// Control is the engine's side of a Process.
type Control interface {
	// ExitFD is a descriptor that polls readable once Exit has its answer.
	ExitFD() int
	// Exit returns the end of the command's own process, once ExitFD is
	// readable. Called by one goroutine at a time.
	Exit() (api.ExitStatus, error)
	// Signal sends sig to the command's own process; InvalidState when it
	// has ended.
	Signal(ctx context.Context, sig int) error
	// Cancel sends SIGTERM to the command's whole process tree, SIGKILL
	// after grace.
	Cancel(ctx context.Context, grace time.Duration) error
	// HangUp tells the command's tree that its terminal has gone (SIGHUP),
	// and ends what is left of the tree after grace (SIGKILL).
	HangUp(ctx context.Context, grace time.Duration) error
	// CloseStdin ends the command's input, also when Stdin is kept open for
	// others (options.Exec.KeepStdin).
	CloseStdin(ctx context.Context) error
	// Resize sets the size of the terminal.
	Resize(ctx context.Context, cols, rows int) error
	// Detach closes the descriptors and leaves the command and its output
	// to whoever attaches next; meanwhile its output waits in the pipes.
	Detach() error
	// Release ends our use of the command: output that is still to come is
	// dropped, the descriptors are closed. The command is not ended.
	Release() error
}
