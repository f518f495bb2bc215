package inits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/options"
)

// Exec starts a command. It opens one connection to the box's init, which
// represents the command until it is released; see [core.Engine].
func (c *Client) Exec(ctx context.Context, id string, o options.Exec) (*core.Process, error) {
	conn, err := c.boxes.Dial(ctx, id, false)
	if err != nil {
		return nil, err
	}
	p, err := c.run(ctx, conn, o)
	if err != nil {
		_ = conn.Close()
		return nil, c.boxes.Explain(id, err)
	}
	c.reads(id, p)
	return p, nil
}

// Attach takes over an exec whose reader has disconnected; see [core.Execs].
func (c *Client) Attach(ctx context.Context, id, execID string, have *core.Position) (*core.Process, error) {
	return c.AttachWith(ctx, id, wire.Attach{ID: execID, Have: (*wire.Position)(have)})
}

// AttachWith does what Attach does for any kind of exec. Errors: those of Attach.
func (c *Client) AttachWith(ctx context.Context, id string, r wire.Attach) (*core.Process, error) {
	execID := r.ID
	if !ids.Exec.Valid(execID) {
		return nil, errNoExec(id, execID)
	}
	conn, err := c.boxes.Dial(ctx, id, false)
	if err != nil {
		return nil, err
	}
	p, err := c.start(ctx, conn, wire.TypeAttach, r)
	if err != nil {
		_ = conn.Close()
		return nil, c.boxes.Explain(id, err)
	}
	c.reads(id, p.Process)
	return p.Process, nil
}

// told are the kinds of failure that a box's init, and what it starts, may tell.
var told = []fault.Kind{
	fault.ExecNotFound, fault.InvalidState, fault.FileNotFound, fault.IsDirectory, fault.InvalidArgument, fault.Storage,
	fault.ResourceExhausted, fault.Unsupported, fault.PermissionDenied, fault.PortUnreachable, fault.Engine,
}

// believed returns err, a failure that a box's init has told, as what the host tells its
// caller. An init that was replaced by a hostile one speaks for its box alone: it can't
// have a caller believe that its key is refused, or the host's disk full of words.
func believed(err error) error {
	f := fault.Of(err)
	kind := f.Kind
	if !slices.Contains(told, kind) {
		kind = fault.Engine
	}
	return fault.New(kind, "%.1000s", cmp.Or(f.Message, "the init of the box does not say what failed"))
}

// maxOutput is more than any command prints: positions up to it can be counted on from.
const maxOutput = 1 << 50

// begun is a process as init passed it to this process.
type begun struct {
	*core.Process
	stdin bool
}

// run starts a command, and refuses an answer that is for another kind of
// command than the one requested.
func (c *Client) run(ctx context.Context, conn *wire.Conn, o options.Exec) (*core.Process, error) {
	b, err := c.start(ctx, conn, wire.TypeStart, startRequest(o))
	if err != nil {
		return nil, err
	}
	if b.Record.TTY != o.TTY || !o.TTY && b.stdin != o.Stdin || b.From != (core.Position{}) {
		_ = b.Detach()
		return nil, fmt.Errorf("%w: the init started another kind of command than was asked for", wire.ErrProtocol)
	}
	return b.Process, nil
}

// start requests the descriptors of a command. On success the process owns the
// connection; on failure the caller still does.
func (c *Client) start(ctx context.Context, conn *wire.Conn, t wire.Type, request any) (begun, error) {
	if err := conn.SetTimeout(answerTimeout); err != nil {
		return begun{}, err
	}
	sent := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		conn.CloseRead() // and no more, since giveUp still has something to say
		select {
		case <-sent:
		case <-time.After(goodbye): // init does not take the request
			conn.Cut()
		}
	})
	defer stop()
	err := conn.Send(t, request)
	close(sent)
	if err != nil {
		return begun{}, errors.Join(ctx.Err(), err)
	}
	f, err := conn.Recv()
	if !stop() { // the connection is of no use any more, even if the answer came
		err = errors.Join(ctx.Err(), err)
	}
	var b begun
	if err == nil {
		b, err = c.started(conn, f)
	}
	if err == nil {
		return b, nil
	}
	f.CloseFDs()
	if t == wire.TypeStart {
		giveUp(conn)
	}
	return begun{}, err
}

// goodbye bounds how long init may take to take requests of one who gives up.
const goodbye = time.Second

// giveUp has init end a command that it was asked to start and whose start nobody waits for
// any more: init may have started it by now, and nobody would know of it.
func giveUp(conn *wire.Conn) {
	if conn.SetTimeout(goodbye) == nil {
		_ = conn.Send(wire.TypeCancel, wire.Cancel{}) // if it fails, init has ended, or ends the command itself
		_ = conn.Send(wire.TypeRelease, nil)
	}
}

func startRequest(o options.Exec) wire.Start {
	r := wire.Start{
		Cmd: o.Cmd, Env: o.Env, WorkingDir: o.WorkingDir, User: o.User,
		TTY: o.TTY, Stdin: o.Stdin, KeepStdin: o.KeepStdin, TimeoutMS: o.Timeout.Milliseconds(),
	}
	if o.TTY {
		r.Cols, r.Rows = orDefault(o.Cols, 80), orDefault(o.Rows, 24)
	}
	if o.Timeout > 0 && r.TimeoutMS == 0 {
		r.TimeoutMS = 1
	}
	return r
}

func orDefault(n, d int) int {
	if n == 0 {
		return d
	}
	return n
}

// started returns the process of a command, with the descriptors from its
// frame. They come from a box, so each that is not a pipe or a terminal is
// refused.
func (c *Client) started(conn *wire.Conn, f wire.Frame) (begun, error) {
	if f.Type == wire.TypeError {
		return begun{}, believed(f.Failure())
	}
	var e wire.Exec
	if f.Type != wire.TypeStarted {
		return begun{}, fmt.Errorf("%w: got frame %d, want the start of a command", wire.ErrProtocol, f.Type)
	}
	if err := f.Decode(&e); err != nil {
		return begun{}, err
	}
	rec, err := execRecord(e)
	if err != nil {
		return begun{}, err
	}
	if e.From.Stdout < 0 || e.From.Stdout > maxOutput || e.From.Stderr < 0 || e.From.Stderr > maxOutput {
		return begun{}, fmt.Errorf("%w: output begins at %v", wire.ErrProtocol, e.From)
	}
	p := &core.Process{Record: rec, Streams: &core.Streams{}, From: core.Position(e.From)}
	p.Streams.Stdin.Store(e.Streams.Stdin)
	p.Streams.Output.Store(e.Streams.Output)
	slots := []**os.File{&p.Stdout}
	if !e.TTY {
		slots = append(slots, &p.Stderr)
		if e.Stdin {
			slots = append(slots, &p.Stdin)
		}
	}
	// The kernel ends a read at a message with descriptors. Bytes buffered
	// after it could be the command's end, which poll would never report.
	if len(f.FDs) != len(slots) || conn.Buffered() {
		return begun{}, fmt.Errorf("%w: %d descriptors of a command", wire.ErrProtocol, len(f.FDs))
	}
	for _, fd := range f.FDs {
		if err := c.checkStream(fd, e.TTY); err != nil {
			return begun{}, err
		}
	}
	if !e.TTY {
		if err := ownReaders(f.FDs[:2]); err != nil {
			return begun{}, err
		}
	}
	for i, fd := range f.FDs { // nothing fails from here, so each has one owner
		*slots[i] = os.NewFile(uintptr(fd), "stream")
	}
	if e.TTY {
		p.Stdin = p.Stdout
	}
	p.Control = &control{conn: conn, files: []*os.File{p.Stdout, p.Stderr, p.Stdin}, streams: p.Streams, unread: func() {}}
	return begun{p, e.Stdin}, nil
}

// ptmxMajor and ptmxMinor are the device number of a pseudo-terminal's master
// side.
const (
	ptmxMajor = 5
	ptmxMinor = 2
)

func (c *Client) checkStream(fd int, tty bool) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	pipe := st.Mode&unix.S_IFMT == unix.S_IFIFO
	terminal := st.Mode&unix.S_IFMT == unix.S_IFCHR && unix.Major(st.Rdev) == ptmxMajor && unix.Minor(st.Rdev) == ptmxMinor
	if c.far {
		terminal = st.Mode&unix.S_IFMT == unix.S_IFSOCK
	}
	if (tty && !terminal) || (!tty && !pipe) {
		return fmt.Errorf("%w: a descriptor of mode %o is neither a pipe nor a terminal", wire.ErrProtocol, st.Mode)
	}
	// In non-blocking mode Go's poller does the waiting, for stdin too, so that
	// a wait can be ended.
	return unix.SetNonblock(fd, true)
}

// ownReaders replaces the read ends of pipes that init passed with newly opened
// ones. Init shares the state of those it passed: it could set them to blocking
// mode, and take away the data that a read then waits for.
func ownReaders(fds []int) error {
	for i, fd := range fds {
		own, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open the output of a command: %w", err)
		}
		_ = unix.Close(fd)
		fds[i] = own
	}
	return nil
}

// control is the connection that represents a command.
type control struct {
	conn  *wire.Conn
	files []*os.File // stdout, stderr, stdin; nil for a stream it lacks
	ended atomic.Bool

	streams *core.Streams
	unread  func() // undoes Client.reads
	// resize sets the size of a terminal that is elsewhere; nil for one of this host.
	resize func(ctx context.Context, cols, rows int) error
}

func (c *control) ExitFD() int {
	return c.conn.FD()
}

// Exit is called once ExitFD is readable, so the connection's deadline bounds
// only the frame itself.
func (c *control) Exit() (api.ExitStatus, error) {
	f, err := c.conn.Recv()
	c.ended.Store(true)
	if err != nil {
		if wire.CutOff(err) {
			// Init has ended, and the command with it.
			return lost(), nil
		}
		return api.ExitStatus{}, fault.Wrap(fault.Engine, err, "wait for the end of a command")
	}
	f.CloseFDs()
	if f.Type == wire.TypeError {
		return api.ExitStatus{}, believed(f.Failure())
	}
	var e api.ExitStatus
	if f.Type != wire.TypeExited {
		return api.ExitStatus{}, fault.New(fault.Engine, "wait for the end of a command: got frame %d", f.Type)
	}
	if err := f.Decode(&e); err != nil {
		return api.ExitStatus{}, fault.Wrap(fault.Engine, err, "read the end of a command")
	}
	status, err := exitStatus(e)
	return status, fault.Wrap(fault.Engine, err, "read the end of a command")
}

func (c *control) send(t wire.Type, body any) error {
	if c.ended.Load() {
		return fault.New(fault.InvalidState, "the command has ended")
	}
	if err := c.conn.Send(t, body); err != nil {
		return fault.Wrap(fault.InvalidState, err, "the command has ended")
	}
	return nil
}

func (c *control) Signal(_ context.Context, sig int) error {
	return c.send(wire.TypeSignal, wire.Signal{Signal: sig})
}

func (c *control) Cancel(_ context.Context, grace time.Duration) error {
	return c.send(wire.TypeCancel, wire.Cancel{GraceMS: grace.Milliseconds()})
}

// Resize sets the terminal's size without init where this process has the terminal
// open.
func (c *control) Resize(ctx context.Context, cols, rows int) error {
	if c.resize != nil && c.files[1] == nil {
		return c.resize(ctx, cols, rows)
	}
	size := unix.Winsize{Col: uint16(cols), Row: uint16(rows)}
	err := core.WithFD(c.files[0], func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &size) })
	if err != nil {
		return fault.Wrap(fault.InvalidState, err, "the command has no terminal")
	}
	return nil
}

// HangUp also works for a command that has ended, since other processes of its
// tree may still run.
func (c *control) HangUp(_ context.Context, grace time.Duration) error {
	err := c.conn.Send(wire.TypeHangUp, wire.Cancel{GraceMS: grace.Milliseconds()})
	return fault.Wrap(fault.InvalidState, err, "the box's init has ended")
}

// CloseStdin closes the command's input in this process, and in init if init
// keeps it open too.
func (c *control) CloseStdin(context.Context) error {
	if in := c.files[2]; in != nil && in != c.files[0] {
		_ = in.Close()                                           // the user may have closed it already
		_ = c.conn.Send(wire.TypeCloseStdin, counted(c.streams)) // if init has ended, nothing reads the input
	}
	return nil
}

func (c *control) Release() error { return c.leave(wire.TypeRelease) }

func (c *control) Detach() error { return c.leave(wire.TypeDetach) }

// leave ends the use of the exec with its last request.
func (c *control) leave(t wire.Type) error {
	_ = c.conn.Send(t, counted(c.streams)) // if init has ended, nothing is left to release
	c.unread()
	for i, f := range c.files {
		if f != nil && (i != 2 || f != c.files[0]) {
			_ = f.Close() // the user may have closed stdin already
		}
	}
	return c.conn.Close()
}
