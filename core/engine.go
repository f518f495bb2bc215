package core

import (
	"context"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"sandbox/api"
	"sandbox/core/feed"
	"sandbox/core/options"
)

// Engine makes boxes and runs commands in them. It is the authority on its
// boxes: the records that it returns describe the real state, also after a
// crash of this process. An Engine is safe for concurrent use, and all failures
// that it returns are classified (package fault).
type Engine interface {
	Boxes
	Execs
	Files
	Ports
	// Close ends this process's use of the engine. Boxes go on running.
	Close() error
}

// Boxes is the part of an [Engine] that makes and ends boxes.
type Boxes interface {
	// Create makes a box and starts it. When it fails, nothing of the box is
	// left. A box that has the id of the request already is returned as it is,
	// in whatever state; one that is being made is waited for. Errors:
	// AlreadyExists (the name), PortInUse, InvalidArgument (the root file system,
	// a volume, a port), PermissionDenied (a path that leads out of its host
	// root), ResourceExhausted, Unsupported, Upstream (the network), Engine,
	// Storage.
	Create(ctx context.Context, req CreateRequest) (Record, error)
	// Start starts a stopped box; a paused one is refused. Errors: BoxNotFound, InvalidState.
	Start(ctx context.Context, id string) (Record, error)
	// Pause has the processes of a running box stand still, as [Box.Pause] says.
	// Errors: BoxNotFound, InvalidState, Timeout, Unsupported.
	Pause(ctx context.Context, id string, reclaim bool) (Record, error)
	// Resume lets the processes of a paused box go on. Errors: BoxNotFound,
	// InvalidState.
	Resume(ctx context.Context, id string) (Record, error)
	// Update changes options of a box. Errors: BoxNotFound.
	Update(ctx context.Context, id string, u options.Update) (Record, error)
	// Stop ends a running or a paused box: it sends SIGTERM to all processes of the box,
	// and SIGKILL to those that are left after grace. It returns the record
	// also when auto_remove removed the box. Errors: BoxNotFound, InvalidState.
	Stop(ctx context.Context, id string, grace time.Duration) (Record, error)
	// Remove removes a box. It removes a running or a paused box only with force. Errors:
	// BoxNotFound, InvalidState.
	Remove(ctx context.Context, id string, force bool) error
	// Snapshot makes the layer with a key, 64 hexadecimal digits, of the disk of a
	// box; see [Box.Snapshot]. Nobody but the box stands on the layer until an image
	// names it. Errors: BoxNotFound, InvalidState, Unsupported, ResourceExhausted,
	// Timeout, Storage.
	Snapshot(ctx context.Context, id, layer string) (Taken, error)
	// Finish ends a box, whose disk becomes the layer with a key, and removes it; see
	// [Box.Finish]. Errors: as Snapshot.
	Finish(ctx context.Context, id, layer string) (Image, error)
	// Rollback gives a box layers that begin with those of its image, and an empty
	// disk on top of them; see [Box.Rollback]. Errors: BoxNotFound, InvalidArgument
	// (other layers), Image (a layer is missing), and those of Start.
	Rollback(ctx context.Context, id string, layers []string) (Record, error)
	// Diff returns what has changed on the disk of a box, and whether there is more
	// than was asked for; see [Box.Diff]. Errors: BoxNotFound, InvalidArgument (the
	// box does not stand on the layers), Storage.
	Diff(ctx context.Context, id string, d DiffRequest) (changes []api.Change, more bool, err error)
	// List returns all boxes, newest first. The slice may be shared with other
	// callers, so it must not be changed.
	List(ctx context.Context) ([]Record, error)
	// Get returns one box by its full id. Errors: BoxNotFound.
	Get(ctx context.Context, id string) (Record, error)
	// Usage measures a box. Errors: BoxNotFound.
	Usage(ctx context.Context, id string) (Usage, error)
	// Measure measures all boxes that are up in one pass, as [Runtime.Measure]
	// says.
	Measure(ctx context.Context) ([]Measured, error)
	// Expiries returns how many boxes of the home came to the end of their time.
	// It asks no shim. Errors: Storage.
	Expiries(ctx context.Context) (Expiries, error)
	// Sweep removes the boxes that have been stopped or failed for at least
	// olderThan, and what a crash has left. It returns what it has removed also
	// when it failed to remove something else.
	Sweep(ctx context.Context, olderThan time.Duration) (Swept, error)
}

// Execs is the part of an [Engine] that runs commands in boxes. All methods
// fail with BoxNotFound, InvalidState (the box is not running) and Engine;
// those that take the id of an exec fail with ExecNotFound too.
type Execs interface {
	// Exec starts a command. For a command that can't be started it returns a
	// Process that has ended.
	Exec(ctx context.Context, boxID string, opts options.Exec) (*Process, error)
	// Attach takes over an exec whose reader has gone without a Release: the
	// reader called Detach, or its process ended. An exec that has ended still
	// has its output and its end to read. have is how much of the output the caller
	// has already, for an engine whose output passes a network: what was on its way
	// to the reader before comes again, and no byte twice. nil is for a caller that
	// has nothing of it. Errors: InvalidState while another reader holds the exec, and
	// after a Release.
	Attach(ctx context.Context, boxID, execID string, have *Position) (*Process, error)
	// Execs returns the last 1,024 execs, newest first, without their
	// environment.
	Execs(ctx context.Context, boxID string) ([]api.Exec, error)
	// FindExec returns the record of one exec.
	FindExec(ctx context.Context, boxID, execID string) (api.Exec, error)
	// AwaitExec waits until an exec has ended. It makes no difference who reads
	// the output. When the box's init dies meanwhile, the exec is returned as
	// lost.
	AwaitExec(ctx context.Context, boxID, execID string) (api.Exec, error)
	// CancelExec sends SIGTERM to the exec's whole process tree, and SIGKILL
	// after grace, and waits until the exec has ended. Errors: InvalidState
	// when it has ended already.
	CancelExec(ctx context.Context, boxID, execID string, grace time.Duration) (api.Exec, error)
	// SignalExec sends sig to the exec's own process. It makes no difference
	// who reads the output. Errors: InvalidState when it has ended already.
	SignalExec(ctx context.Context, boxID, execID string, sig int) (api.Exec, error)
	// InterruptExec sends SIGINT to the exec's own process and to those of its
	// children that have stayed in its process group, as control-C does on a
	// terminal. The init of a box that was started before its host was given this
	// version signals the own process alone. Errors: as SignalExec.
	InterruptExec(ctx context.Context, boxID, execID string) (api.Exec, error)
}

// Files is the part of an [Engine] that works on the files of running boxes. A
// path is resolved inside the box, with the rights of a user of the box, by default
// its root, and can't lead out of the box. Errors: BoxNotFound, InvalidState,
// Engine, FileNotFound, IsDirectory, InvalidArgument (also a user that the box does
// not have), PermissionDenied (the user lacks the right), Storage (the box's disk),
// Unsupported (the box's init is too old for the method or for a user).
type Files interface {
	// Upload reads content to EOF and writes it as a file, or as the files of a
	// tar. An error that content returns is returned unchanged.
	Upload(ctx context.Context, boxID string, u Upload, content io.Reader) (api.Uploaded, error)
	// Download opens a file of a box, or a directory as a tar.
	Download(ctx context.Context, boxID string, o options.Download) (*Download, error)
	// StatFile looks at a file. It does not follow a link that the path leads to.
	StatFile(ctx context.Context, boxID string, o options.StatFile) (api.File, error)
	// ListFiles returns a page of the files below a directory. It follows the
	// links on the way to the directory, and none below it.
	ListFiles(ctx context.Context, boxID string, o options.ListFiles) (api.Files, error)
	// MakeDirectory makes a directory. One that is there already is left as it is.
	MakeDirectory(ctx context.Context, boxID string, o options.MakeDirectory) (api.MadeDirectory, error)
	// MoveFile gives a file another path and returns it from there. It replaces a
	// file that has this path, but no directory that is not empty.
	MoveFile(ctx context.Context, boxID string, o options.MoveFile) (api.File, error)
	// RemoveFile removes a file or a directory, and follows no link. What it
	// removed before it failed is gone.
	RemoveFile(ctx context.Context, boxID string, o options.RemoveFile) (api.RemovedFiles, error)
	// User returns a user of the box. One that is missing is an InvalidArgument, or
	// is made if that was asked for; without programs of the box.
	User(ctx context.Context, boxID string, o options.User) (User, error)
	// WatchFiles begins to watch a directory. It returns once the watch stands:
	// no event after that is lost without an Overflow. The caller closes the
	// watch; it also ends with ctx. Errors: also ResourceExhausted (the box's
	// limit of watches).
	WatchFiles(ctx context.Context, boxID string, o options.WatchFiles) (*FileWatch, error)
}

// Ports is the part of an [Engine] that reaches programs in boxes.
type Ports interface {
	// Connect connects to a TCP port of a box, as [Box.Connect] says.
	Connect(ctx context.Context, boxID string, port int) (net.Conn, error)
}

// Position is a place in the output of an exec: how many bytes of each stream come
// before it. A terminal has only Stdout.
type Position struct{ Stdout, Stderr int64 }

// FileWatch has the events of a watch. Behind the last one, whose type is
// [api.EndOfWatch], Next returns io.EOF; it fails with Engine where the watch broke
// off.
type FileWatch = feed.Feed[api.FileEvent]

// User is a user of a box.
type User struct {
	Name string
	Home string // absolute
	Made bool   // it was not there before
}

// Upload says where content is written in a box, and how.
type Upload struct {
	// Dest is an absolute path. When it ends in "/" or is a directory, the file
	// is written into that directory as Name. Missing directories are made. An
	// existing file is replaced in one step, and only when all of the content
	// has arrived; it keeps its owner, and its mode unless a mode is given. An
	// existing symbolic link is replaced and not followed. A new file belongs
	// to User, and so does a replaced one unless that is the box's root.
	Dest string `json:"dest"`
	Name string `json:"name,omitempty"` // one element of a path
	Mode *int   `json:"mode,omitempty"` // permission bits, up to 07777; else 0644
	// LateMode returns the mode, for content whose mode is known only behind
	// the content. It is called once, when all of the content has been read; if
	// it returns nil, Mode counts. LateMode may be nil, and has no effect on a
	// tar.
	LateMode func() *int `json:"-"`
	// Tar says that the content is a tar, whose entries are written into the
	// directory Dest. A file that was not there appears as it is written.
	Tar bool `json:"tar,omitempty"`
	// Owners says that the entries of a tar belong to whom it names, by number. It
	// needs the box's root as User, and no Owner. Without it the owners in a tar are
	// ignored.
	Owners bool `json:"-"`
	// User is the user whose rights count and who owns what is made, as in
	// [options.Exec]; "" for the box's root.
	User string `json:"user,omitempty"`
	// Owner is who owns what is made where User is the box's root, which can give
	// files away: USER[:GROUP], names or numbers; "" for User.
	Owner string `json:"owner,omitempty"`
}

// Download is a file that streams out of a box. One goroutine reads it, and it
// must be closed. A file that turns out shorter than Size ends with an error
// instead of EOF, and so does an incomplete tar. Of a file that grows
// meanwhile, the first Size bytes are read.
type Download struct {
	io.ReadCloser
	Name string // last element of the path
	Size int64  // -1 for a tar
}

// Swept is what a sweep removed.
type Swept struct {
	Boxes []string // ids
	Bytes int64    // that their disks occupied
}

// CreateRequest is what the engine is given to make a box. The image is already
// in the store.
type CreateRequest struct {
	ID      string
	Options options.Box
	Image   Image // the image of Options.Image; with RootfsPath only Layers is set
	// Owned ties an auto_remove box to this process: the box is stopped and
	// removed when the process ends, however it ends.
	Owned bool
}

// Images finds the images that boxes start from.
type Images interface {
	// Resolve returns the image that ref names, and pulls it when it is not in
	// the store. Errors: Image (the image can't be pulled or read), Storage,
	// and the reason for which ctx ended.
	Resolve(ctx context.Context, ref string) (Image, error)
	// Command returns the command that the image of ref has of its own, its
	// Entrypoint with its Cmd behind it, or nil. It pulls the image as Resolve
	// does. Errors: those of Resolve.
	Command(ctx context.Context, ref string) ([]string, error)
	// Snapshot adds an image. It calls take with the key that the image's topmost
	// layer is to have, and take makes that layer and returns the image. Errors:
	// InvalidArgument (the name), AlreadyExists, Storage, those of take, and the
	// reason for which ctx ended.
	Snapshot(ctx context.Context, s SnapshotRequest, take func(layer string) (Image, error)) (api.Image, error)
	// Snapshots returns all images that are snapshots. Errors: Storage.
	Snapshots(ctx context.Context) ([]api.SnapshotNode, error)
	// Stack returns an image of the store, and the directories of its own layers, lowest
	// first, also where a layer that they were merged into would do. Errors:
	// ImageNotFound, InvalidArgument, Image (a layer is missing), Storage.
	Stack(ref string) (api.Image, []string, error)
	// Remove removes an image and the layers that nothing else needs. force removes it
	// also while boxes were made from it. Errors: ImageNotFound, InvalidArgument,
	// InvalidState (it is in use), Storage, and the reason for which ctx ended.
	Remove(ctx context.Context, ref string, force bool) error
}

// Image is an unpacked image.
type Image struct {
	Ref        string   `json:"ref,omitempty"`
	ID         string   `json:"id,omitempty"` // sha256:...
	Layers     []string `json:"layers"`       // absolute directories, lowest first
	Env        []string `json:"env,omitempty"`
	WorkingDir string   `json:"working_dir,omitempty"`
	User       string   `json:"user,omitempty"`
	// Command is its Entrypoint with its Cmd behind it.
	Command     []string         `json:"command,omitempty"`
	HealthCheck *api.HealthCheck `json:"healthcheck,omitempty"` // of the command; nil for none
	StopSignal  string           `json:"stop_signal,omitempty"` // ends the command; "" for SIGTERM
}

// ImageUse says which image a box was made from.
type ImageUse struct {
	Box   string // its name, or its id if it has none
	Image Image
}

// Usage is what a box has used since it was started.
type Usage struct {
	CPU         time.Duration
	MemoryBytes int64 // what it holds now
	CacheBytes  int64 // of these, what files take up that are kept in memory
	Processes   int64 // processes and threads of its commands now
	Commands    int64 // execs that were asked for
	ExecErrors  int64 // execs that could not be started
	// StdinBytes and OutputBytes are what [Streams] counted for all execs. Of an
	// exec that another process reads, they hold what that one has told: it tells
	// when it closes stdin, ends its use of the exec, or measures the box itself.
	StdinBytes, OutputBytes int64
	// Network counts what has passed the box's network interface. It is nil
	// when that is unknown, as it is while the box is not running.
	Network *Traffic
	// DiskBytes is what the box's own disk takes up on the host now. It is nil for
	// a box without a disk of a size, whose files nobody counts.
	DiskBytes *int64
	// Disk counts what has passed between the box and the devices of the host. It
	// is nil when that is unknown: only pure cgroup2 counts it.
	Disk *DiskTraffic
}

// DiskTraffic counts the bytes that a box has read from devices and written to them.
type DiskTraffic struct{ Read, Written int64 }

// Measured is what a box has used at a moment. The counts that a box's init keeps
// (Commands, ExecErrors, StdinBytes, OutputBytes) are 0 in its Usage.
type Measured struct {
	Record
	Usage
	At time.Time
}

// Expiries counts the boxes whose time has come, since the home was made, by the
// reason that they then have.
type Expiries struct {
	Expired Endings `json:"expired"` // ttl_seconds was over
	Idle    Endings `json:"idle"`    // nobody used it for idle_seconds
}

// Endings counts what became of boxes.
type Endings struct {
	Stop   int64 `json:"stop"`
	Pause  int64 `json:"pause"`
	Remove int64 `json:"remove"` // also by a stop, of boxes with auto_remove
}

// Add counts a box whose time has come: with idle, since nobody used it.
func (e *Expiries) Add(o options.Box, idle bool) {
	ends := &e.Expired
	if idle {
		ends = &e.Idle
	}
	switch {
	case o.OnExpiry == options.ExpiryPause:
		ends.Pause++
	case o.OnExpiry == options.ExpiryRemove || o.AutoRemove:
		ends.Remove++
	default:
		ends.Stop++
	}
}

// Traffic counts the bytes that a box has sent and received, headers included.
type Traffic struct{ Sent, Received int64 }

// Streams counts the bytes of an exec's stdin that were written and of its output
// that were read, by all its readers since it was started.
type Streams struct{ Stdin, Output atomic.Int64 }

// Process is a command that an engine has started. The descriptors belong to
// the holder of the Process, until it calls Control.Release. The pipes don't
// block: a read from an empty one fails with EAGAIN.
type Process struct {
	Record api.Exec // when it started
	Stdin  *os.File // nil unless it was asked for; with TTY, the terminal
	Stdout *os.File // the terminal with TTY
	Stderr *os.File // nil with TTY
	// Streams begins with what earlier readers have counted. The holder of the
	// Process adds what it writes and reads itself.
	Streams *Streams
	From    Position // where the output begins that Stdout and Stderr have; see [Exec.From]
	Control
}

// Control is the engine's side of a Process.
type Control interface {
	// ExitFD returns a descriptor that becomes readable when Exit can be
	// called.
	ExitFD() int
	// Exit returns the end of the command's own process. It is called when
	// ExitFD is readable, by one goroutine at a time.
	Exit() (api.ExitStatus, error)
	// Signal sends sig to the command's own process. Errors: InvalidState when
	// the process has ended.
	Signal(ctx context.Context, sig int) error
	// Cancel sends SIGTERM to the command's whole process tree, and SIGKILL
	// after grace.
	Cancel(ctx context.Context, grace time.Duration) error
	// HangUp sends SIGHUP to the command's whole process tree, because its
	// terminal has gone, and SIGKILL to what is left of the tree after grace.
	HangUp(ctx context.Context, grace time.Duration) error
	// CloseStdin ends the command's input, also when the input was to stay open
	// for later readers of the exec (options.Exec.KeepStdin).
	CloseStdin(ctx context.Context) error
	// Resize sets the size of the terminal.
	Resize(ctx context.Context, cols, rows int) error
	// Detach closes the descriptors and leaves the command and its output to
	// the next Attach. Until then the output waits in the pipes.
	Detach() error
	// Release closes the descriptors and gives the exec up for good: output
	// that is still to come is dropped. The command is not ended.
	Release() error
}
