package core

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"sandbox/api"
	"sandbox/core/options"
)

// Box is a handle on a box of the home. Several handles may refer to the same
// box. A Box is safe for concurrent use.
//
// Exec, Run, Connect and the methods that work on files need the box to run. If it has
// auto_start they start or resume it first; their errors are those of [Box.Awake] too.
type Box struct {
	r  *Runtime
	id string
}

func (r *Runtime) box(rec Record) *Box { return r.At(rec.ID) }

// ID returns the box's id.
func (b *Box) ID() string { return b.id }

// Record returns the current record of the box. Errors: BoxNotFound.
func (b *Box) Record(ctx context.Context) (Record, error) { return b.r.engine.Get(ctx, b.id) }

// Start starts a stopped box again. Errors: BoxNotFound, InvalidState.
func (b *Box) Start(ctx context.Context) (Record, error) {
	if err := b.r.refuseAfterShutdown(); err != nil {
		return Record{}, err
	}
	return b.r.engine.Start(ctx, b.id)
}

// Pause has all processes of the box stand still, and the clocks of its execs too.
// Nothing can be started in it until Resume; its execs can be listed, and their
// readers wait. With reclaim, the kernel takes back what it can of the box's memory,
// which takes time here and after Resume. Errors: BoxNotFound, InvalidState (it does
// not run), Timeout (a process could not be stopped: the box runs on), Unsupported
// (reclaim, where the kernel can't).
func (b *Box) Pause(ctx context.Context, reclaim bool) (Record, error) {
	return b.r.engine.Pause(ctx, b.id, reclaim)
}

// Resume lets the processes of a paused box go on. Errors: BoxNotFound, InvalidState
// (it is not paused).
func (b *Box) Resume(ctx context.Context) (Record, error) { return b.r.engine.Resume(ctx, b.id) }

// Update changes options of the box, in whatever state. A time that it is given begins
// now, or when it is started. The caller has checked u with its Check method. Errors:
// BoxNotFound.
func (b *Box) Update(ctx context.Context, u options.Update) (Record, error) {
	return b.r.engine.Update(ctx, b.id, u)
}

// Stop ends all processes of the box: it sends SIGTERM, and SIGKILL to those
// that are left after grace. The disk is kept, unless the box has auto_remove,
// which removes it with the box. Errors: BoxNotFound, InvalidState.
func (b *Box) Stop(ctx context.Context, grace time.Duration) (Record, error) {
	rec, err := b.r.engine.Stop(ctx, b.id, grace)
	if err == nil && rec.Options.AutoRemove {
		b.r.forget(b.id)
	}
	return rec, err
}

// Remove removes the box. It removes a running box only with force. Errors:
// BoxNotFound, InvalidState.
func (b *Box) Remove(ctx context.Context, force bool) error {
	err := b.r.engine.Remove(ctx, b.id, force)
	if err == nil {
		b.r.forget(b.id)
	}
	return err
}

// Usage measures the box. Errors: BoxNotFound.
func (b *Box) Usage(ctx context.Context) (Usage, error) { return b.r.engine.Usage(ctx, b.id) }

// Exec starts a command. The caller has checked o with its Check method. A
// command that can't be started is an exec too: it has one line on stderr, and
// its end says why, as [api.ExitStatus] describes. Errors: BoxNotFound,
// InvalidState (the box is not running), Engine.
func (b *Box) Exec(ctx context.Context, o options.Exec) (*Exec, error) {
	p, err := awake(ctx, b, func() (*Process, error) { return b.r.engine.Exec(ctx, b.id, o) })
	if err != nil {
		b.r.stats.execErrors.Add(1)
		return nil, err
	}
	b.r.stats.execs.Add(1)
	return &Exec{p: p, errors: &b.r.stats.execErrors}, nil
}

// Run runs a command to its end and returns its result, with at most
// [api.MaxOutput] bytes of each stream. It ends the command when ctx ends. Errors: as
// Exec, and those of ctx.
func (b *Box) Run(ctx context.Context, cmd ...string) (api.RunResult, error) {
	start := time.Now()
	e, err := b.Exec(ctx, options.Exec{Cmd: cmd})
	if err != nil {
		return api.RunResult{}, err
	}
	defer e.Close()
	var kept api.Capture
	status, err := e.Stream(ctx, make([]byte, OutputBuffer), kept.Add)
	if err != nil {
		_, canceling := b.Cancel(context.WithoutCancel(ctx), e.ID(), 0)
		return api.RunResult{}, errors.Join(err, canceling)
	}
	result := kept.Result(status)
	result.DurationMS = time.Since(start).Milliseconds()
	return result, nil
}

// Attach takes over an exec that no reader holds any more. Errors: as Exec, and
// ExecNotFound; InvalidState when another reader holds the exec, and after the
// exec was closed.
func (b *Box) Attach(ctx context.Context, execID string) (*Exec, error) {
	return b.attach(ctx, execID, nil)
}

// AttachBehind does what Attach does for a caller that has the output up to a position
// already, as it keeps it on disk.
func (b *Box) AttachBehind(ctx context.Context, execID string, have Position) (*Exec, error) {
	return b.attach(ctx, execID, &have)
}

func (b *Box) attach(ctx context.Context, execID string, have *Position) (*Exec, error) {
	p, err := b.r.engine.Attach(ctx, b.id, execID, have)
	if err != nil {
		return nil, err
	}
	return &Exec{p: p, errors: new(atomic.Int64)}, nil
}

// Execs returns the box's last 1,024 execs, newest first. Errors: BoxNotFound,
// InvalidState (the box is not running), Engine.
func (b *Box) Execs(ctx context.Context) ([]api.Exec, error) {
	return b.r.engine.Execs(ctx, b.id)
}

// ExecRecord returns the current record of an exec. Errors: as Execs, and
// ExecNotFound.
func (b *Box) ExecRecord(ctx context.Context, execID string) (api.Exec, error) {
	return b.r.engine.FindExec(ctx, b.id, execID)
}

// AwaitExec waits until an exec has ended. It makes no difference who reads the
// output of the exec. Errors: as ExecRecord.
func (b *Box) AwaitExec(ctx context.Context, execID string) (api.Exec, error) {
	return b.r.engine.AwaitExec(ctx, b.id, execID)
}

// Cancel ends the whole process tree of an exec and waits until it has ended:
// it sends SIGTERM, and SIGKILL after grace. It makes no difference who reads
// the output of the exec. Errors: as ExecRecord, and InvalidState when the exec
// has ended already.
func (b *Box) Cancel(ctx context.Context, execID string, grace time.Duration) (api.Exec, error) {
	return b.r.engine.CancelExec(ctx, b.id, execID, grace)
}

// Signal sends a signal to the own process of an exec. It makes no difference who
// reads the output of the exec. Errors: as Cancel.
func (b *Box) Signal(ctx context.Context, execID string, sig int) (api.Exec, error) {
	return b.r.engine.SignalExec(ctx, b.id, execID, sig)
}

// Interrupt sends SIGINT to an exec and to its children, as control-C does on a
// terminal. Errors: as Signal.
func (b *Box) Interrupt(ctx context.Context, execID string) (api.Exec, error) {
	return b.r.engine.InterruptExec(ctx, b.id, execID)
}

// Upload writes a file, or the files of a tar, to the box; see [Files].
func (b *Box) Upload(ctx context.Context, u Upload, content io.Reader) (api.Uploaded, error) {
	source := &onceRead{Reader: content}
	var made api.Uploaded
	var err error
	return awake(ctx, b, func() (api.Uploaded, error) {
		if !source.begun {
			made, err = b.r.engine.Upload(ctx, b.id, u, source)
		}
		return made, err
	})
}

// Download opens a file of the box, or a directory as a tar; see [Files].
func (b *Box) Download(ctx context.Context, o options.Download) (*Download, error) {
	return awake(ctx, b, func() (*Download, error) { return b.r.engine.Download(ctx, b.id, o) })
}

// StatFile looks at a file of the box; see [Files].
func (b *Box) StatFile(ctx context.Context, o options.StatFile) (api.File, error) {
	return awake(ctx, b, func() (api.File, error) { return b.r.engine.StatFile(ctx, b.id, o) })
}

// ListFiles returns a page of the files below a directory of the box; see [Files].
func (b *Box) ListFiles(ctx context.Context, o options.ListFiles) (api.Files, error) {
	return awake(ctx, b, func() (api.Files, error) { return b.r.engine.ListFiles(ctx, b.id, o) })
}

// MakeDirectory makes a directory in the box; see [Files].
func (b *Box) MakeDirectory(ctx context.Context, o options.MakeDirectory) (api.MadeDirectory, error) {
	return awake(ctx, b, func() (api.MadeDirectory, error) { return b.r.engine.MakeDirectory(ctx, b.id, o) })
}

// MoveFile gives a file of the box another path; see [Files].
func (b *Box) MoveFile(ctx context.Context, o options.MoveFile) (api.File, error) {
	return awake(ctx, b, func() (api.File, error) { return b.r.engine.MoveFile(ctx, b.id, o) })
}

// RemoveFile removes a file or a directory of the box; see [Files].
func (b *Box) RemoveFile(ctx context.Context, o options.RemoveFile) (api.RemovedFiles, error) {
	return awake(ctx, b, func() (api.RemovedFiles, error) { return b.r.engine.RemoveFile(ctx, b.id, o) })
}

// User returns a user of the box, and makes one; see [Files].
func (b *Box) User(ctx context.Context, o options.User) (User, error) {
	return awake(ctx, b, func() (User, error) { return b.r.engine.User(ctx, b.id, o) })
}

// WatchFiles begins to watch a directory of the box; see [Files].
func (b *Box) WatchFiles(ctx context.Context, o options.WatchFiles) (*FileWatch, error) {
	return awake(ctx, b, func() (*FileWatch, error) { return b.r.engine.WatchFiles(ctx, b.id, o) })
}

// Connect connects to a TCP port of the box, whatever network the box has: to a
// program that listens on 127.0.0.1, on ::1 or on the box's own address, tried in this
// order. The program sees a client from inside the box. ctx bounds the connecting
// alone. The connection can be closed for writing alone (CloseWrite). Its owner closes
// it; it also ends with the box. Errors: BoxNotFound, InvalidState (the box is not
// running), InvalidArgument (no port from 1 to 65535), PortUnreachable (nothing listens
// there, or it does not answer), ResourceExhausted, Engine, and those of ctx.
func (b *Box) Connect(ctx context.Context, port int) (net.Conn, error) {
	return awake(ctx, b, func() (net.Conn, error) { return b.r.engine.Connect(ctx, b.id, port) })
}
