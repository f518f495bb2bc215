package httpd

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/spool"
)

// Bounds of a WebSocket. A frame of input is passed on in pieces, so that a large
// one needs no memory.
const (
	maxFrame    = 16 << 20
	maxControl  = 64 << 10
	inputBuffer = 32 << 10
	// silent is how many pings a client over TCP may leave unanswered while
	// nothing keeps it from answering. Then it is taken for gone.
	silent = 4
	// farewell is how long a client has to take the last frames.
	farewell = 2 * time.Second
)

// subprotocol is the name that clients of this protocol offer.
const subprotocol = "sandbox.v1"

// socket is a WebSocket between a client and one command. One goroutine writes
// output, one reads the client's frames, and one sends pings.
type socket struct {
	*websocket.Conn
	remote bool           // the client came over TCP, where it may vanish unnoticed
	beat   time.Duration  // between two pings
	pings  atomic.Int32   // sent since the last frame from the client
	busy   atomic.Int32   // writes under way, to the client or to the command
	turn   chan struct{}  // holds one element while a control frame, or output past the Conn, is written
	ends   sync.WaitGroup // the goroutines that serve starts
}

// mustUpgrade refuses a request that does not ask for a WebSocket. Handlers call
// it before they start anything. Errors: Malformed.
func (r *request) mustUpgrade() error {
	if !websocket.IsWebSocketUpgrade(r.Request) {
		return fault.New(fault.Malformed, "this is a WebSocket: send Connection: Upgrade and Upgrade: websocket")
	}
	return nil
}

// upgrade turns the request's connection into a WebSocket. Errors: Malformed.
func (s *Server) upgrade(w http.ResponseWriter, r *request) (*socket, error) {
	var why error
	u := websocket.Upgrader{
		// Any origin may connect: browsers send no key of their own accord, so
		// that a page of another site has none.
		CheckOrigin: func(*http.Request) bool { return true },
		Error:       func(_ http.ResponseWriter, _ *http.Request, _ int, err error) { why = err },
	}
	conn, err := u.Upgrade(w, r.Request, http.Header{"Sec-Websocket-Protocol": r.chosen()})
	if err != nil {
		return nil, fault.Wrap(fault.Malformed, errors.Join(why, err), "no WebSocket")
	}
	c := &socket{Conn: conn, remote: r.by != ByFile, beat: s.Heartbeat, turn: make(chan struct{}, 1)}
	c.SetReadLimit(maxFrame)
	c.SetPongHandler(func(string) error { c.listening(); return nil })
	c.SetPingHandler(func(data string) error { c.reply(websocket.PongMessage, []byte(data)); return nil })
	c.SetCloseHandler(func(code int, _ string) error {
		c.reply(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""))
		return nil
	})
	r.socket = c
	return c, nil
}

// chosen returns the subprotocol to select among the offered ones. A browser
// breaks off when none is selected, so the one that carries the key is selected
// if the client offers no other.
func (r *request) chosen() []string {
	offers := websocket.Subprotocols(r.Request)
	for _, offer := range offers {
		if offer == subprotocol {
			return []string{subprotocol}
		}
	}
	if len(offers) > 0 && strings.HasPrefix(offers[0], bearerProtocol) {
		return offers[:1]
	}
	return nil
}

// listening notes that the client is alive.
func (c *socket) listening() { c.pings.Store(0) }

// control is a text frame from a client (contract, section 5).
type control struct {
	Type   string `json:"type"`
	Cols   int    `json:"cols"`
	Rows   int    `json:"rows"`
	Signal string `json:"signal"`
	Stdout *int64 `json:"stdout"`
	Stderr *int64 `json:"stderr"`
}

// actions are the functions that a client's frames call.
type actions struct {
	input  func([]byte) error
	resize func(cols, rows int) error
	signal func(name string) error
	eof    func() error
}

var (
	// errHungUp means that the client has closed the connection, or has vanished.
	errHungUp = errors.New("the client has hung up")
	// errDetached means that the client has said that it leaves, and that the
	// command goes on.
	errDetached = errors.New("the client has detached")
)

// detached is errDetached with what the client has had: bytes of each stream.
type detached struct{ had [2]int64 }

func (detached) Error() string { return errDetached.Error() }

func (detached) Unwrap() error { return errDetached }

// detached returns what a frame of that type says. A stream that it leaves out the
// client has had as far as it was sent.
func (m control) detached() detached {
	d := detached{[2]int64{math.MaxInt64, math.MaxInt64}}
	for s, had := range []*int64{m.Stdout, m.Stderr} {
		if had != nil {
			d.had[s] = *had
		}
	}
	return d
}

// serve calls show, which sends output until the command ends, and meanwhile reads
// the client's frames and pings it. The context that show gets ends when the client
// has gone or has sent a frame that is refused. serve then tells the client the
// end, reads no more of its frames, and returns the reason. The caller waits for c.ends
// when it has made sure that no write to the command still blocks. The connection is
// closed by Server.linger.
func (c *socket) serve(ctx context.Context, on actions, show func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.ends.Go(func() { cancel(c.receive(on)) })
	c.ends.Go(func() { c.ping(ctx, cancel) })
	// A write that blocks on the client ends when the connection is closed.
	shown := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-shown:
		case <-time.After(farewell):
			_ = c.Close()
		}
	})
	err := show(ctx)
	stop()
	close(shown)
	if cause := context.Cause(ctx); ctx.Err() != nil && cause != nil {
		err = cause
	}
	c.leave(err)
	cancel(nil)
	c.endStream(err)
	return err
}

// endStream sends the end of the stream behind the last frame, and ends receive and
// ping. The connection of a client that has gone it closes. It closes that of a client
// over the Unix socket, too, who can read what was sent after that.
func (c *socket) endStream(err error) {
	if errors.Is(err, errHungUp) || !c.remote {
		_ = c.Close()
		return
	}
	conn := c.NetConn()
	_ = conn.SetDeadline(time.Unix(1, 0))
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // it fails if the client has gone
	}
}

// linger closes the connection of a WebSocket when its client has closed its own side,
// and drops what comes until then. TCP throws away what the client has not taken yet if
// the connection is closed while bytes of the client are unread, or if some come after
// that, as signs of life do. A client that sends nothing for as long as it may leave
// pings unanswered is not waited for. When the server ends, each has its farewell.
func (s *Server) linger(c *socket) {
	defer func() { _ = c.Close() }()
	done := make(chan struct{})
	defer close(done)
	defer context.AfterFunc(s.draining, func() {
		select {
		case <-done:
		case <-time.After(farewell):
			_ = c.Close()
		}
	})()
	conn, piece := c.NetConn(), make([]byte, inputBuffer)
	for err := error(nil); err == nil; {
		_ = conn.SetReadDeadline(time.Now().Add(silent * c.beat))
		_, err = conn.Read(piece)
	}
}

// receive reads the client's frames until one is refused or the client has gone.
func (c *socket) receive(on actions) error {
	buf := make([]byte, inputBuffer)
	for {
		kind, frame, err := c.NextReader()
		if err != nil {
			return errHungUp
		}
		c.listening()
		if kind == websocket.BinaryMessage {
			err = c.input(frame, buf, on.input)
		} else {
			err = c.control(frame, on)
		}
		if err != nil {
			return err
		}
	}
}

// input passes a binary frame to the command, in pieces.
func (c *socket) input(frame io.Reader, buf []byte, to func([]byte) error) error {
	c.busy.Add(1)
	defer c.busy.Add(-1)
	for {
		n, err := frame.Read(buf)
		if n > 0 {
			if err := to(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return errHungUp
		}
	}
}

// control reads a text frame and does what it says. Errors: Malformed,
// InvalidArgument, TooLarge, and those of the command.
func (c *socket) control(frame io.Reader, on actions) error {
	doc, err := io.ReadAll(io.LimitReader(frame, maxControl+1))
	if err != nil {
		return errHungUp
	}
	if len(doc) > maxControl {
		return errTooLarge(maxControl)
	}
	var m control
	if err := document.Read(doc, &m); err != nil {
		return err
	}
	switch m.Type {
	case "resize":
		if m.Cols < 1 || m.Cols > maxSide || m.Rows < 1 || m.Rows > maxSide {
			return document.Invalid("cols", "range", "and rows must be from 1 to 65535")
		}
		return on.resize(m.Cols, m.Rows)
	case "signal":
		return on.signal(m.Signal)
	case "eof":
		return on.eof()
	case "detach":
		return m.detached()
	}
	return document.Invalid("type", "value", "must be resize, signal, eof or detach")
}

// maxSide bounds the columns and rows of a terminal.
const maxSide = 1<<16 - 1

// actionsOf returns what the frames of an attached client do to a command. Frames for
// one that has ended are dropped, since the client is about to read its exit. The end of
// writing ends a write that waits; nothing is obeyed behind it.
func actionsOf(ctx, writing context.Context, e *spool.Exec, a *spool.Attached) actions {
	tty, open := e.Record().TTY, a.Open()
	on := func(do func(*core.Exec) error) error {
		command, err := a.Command()
		if err == nil {
			err = do(command)
		}
		if fault.Is(err, fault.InvalidState) {
			return nil
		}
		return err
	}
	write := func(p []byte) error {
		_, _ = e.Feed(writing, p) // the command may have closed its end
		return writing.Err()
	}
	return actions{
		input: func(p []byte) error {
			return on(func(*core.Exec) error {
				if !open { // of a command that has ended it is not known any more
					return fault.New(fault.InvalidArgument, "the command takes no input: start it with stdin_open or tty")
				}
				return write(p)
			})
		},
		resize: func(cols, rows int) error {
			if !tty {
				return fault.New(fault.InvalidArgument, "the command has no terminal to resize")
			}
			return on(func(x *core.Exec) error { return x.Resize(ctx, cols, rows) })
		},
		signal: func(name string) error {
			sig, err := signalOf(name)
			if err != nil {
				return err
			}
			return on(func(x *core.Exec) error { return send(ctx, x, tty, sig) })
		},
		eof: func() error {
			if tty {
				return on(func(*core.Exec) error { return write([]byte(core.EndOfInput)) })
			}
			return on(func(x *core.Exec) error { return x.CloseStdin(ctx) })
		},
	}
}

// send sends a signal to a command. On a terminal INT, QUIT and TSTP go to its
// foreground process group, as if the user had pressed the key.
func send(ctx context.Context, x *core.Exec, tty bool, sig unix.Signal) error {
	if tty && (sig == unix.SIGINT || sig == unix.SIGQUIT || sig == unix.SIGTSTP) {
		err := x.Stdin().WithFD(func(fd int) error { return unix.IoctlSetInt(fd, unix.TIOCSIG, int(sig)) })
		return fault.Wrap(fault.InvalidState, err, "signal the terminal's foreground")
	}
	return x.Signal(ctx, int(sig))
}

// guarded returns actions that refuse what writes to the command while may
// returns an error. Sizes are ignored then, because clients send them unasked.
func (on actions) guarded(may func() error) actions {
	checked := func(do func() error) error {
		if err := may(); err != nil {
			return err
		}
		return do()
	}
	return actions{
		input:  func(p []byte) error { return checked(func() error { return on.input(p) }) },
		signal: func(name string) error { return checked(func() error { return on.signal(name) }) },
		eof:    func() error { return checked(on.eof) },
		resize: func(cols, rows int) error {
			if may() != nil {
				return nil
			}
			return on.resize(cols, rows)
		},
	}
}

// ping keeps the connection alive, and cancels when the client has vanished. A
// client may be unable to answer, because it reads no output just now or because
// its command reads no input. It is not taken for gone then: TCP itself finds out
// when its host has died.
func (c *socket) ping(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(c.beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if c.busy.Load() > 0 {
			c.listening()
			continue
		}
		// Pings are counted, and not time: while this process itself stands still,
		// it asks no client anything.
		if c.remote && c.pings.Add(1) > silent {
			cancel(errHungUp)
			return
		}
		// A day is as good as no deadline: the client may read late.
		if c.writeControl(websocket.PingMessage, nil, 24*time.Hour) != nil {
			cancel(errHungUp)
			return
		}
	}
}

// ready is the first frame of the server. Only an attachment to an exec has the
// offsets at which the streams begin.
type ready struct {
	Type   string `json:"type"`
	ExecID string `json:"exec_id"`
	Stdout *int64 `json:"stdout_from,omitempty"`
	Stderr *int64 `json:"stderr_from,omitempty"`
}

// gap is the frame that tells an observer where the streams go on, because output
// was dropped before it was sent.
type gap struct {
	Type   string `json:"type"`
	Stdout int64  `json:"stdout_from"`
	Stderr int64  `json:"stderr_from"`
}

// exited is the last frame of the server when the command has ended.
type exited struct {
	Type     string         `json:"type"`
	ExitCode *int           `json:"exit_code"`
	Signal   *int           `json:"signal"`
	Status   api.ExecStatus `json:"status"`
	Reason   *api.Reason    `json:"reason"`
}

// trouble is the last frame of the server when something has failed.
type trouble struct {
	Type    string `json:"type"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// leave sends the error, if there is one, and a close frame. A client that has gone
// gets nothing. Where all went well, show has sent the exit before.
func (c *socket) leave(err error) {
	if errors.Is(err, errHungUp) {
		return
	}
	_ = c.SetWriteDeadline(time.Now().Add(farewell))
	code := websocket.CloseNormalClosure
	if err != nil && !errors.Is(err, errDetached) {
		code = websocket.CloseInternalServerErr
		if errors.Is(err, context.Canceled) {
			err = errEnds()
		}
		f := fault.Of(err)
		_ = c.tell(trouble{"error", f.Kind.Row().Code, f.Message})
	}
	_ = c.writeControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), farewell)
}

// exit sends the end of a command.
func (c *socket) exit(rec api.Exec) error {
	return c.tell(exited{"exit", rec.ExitCode, rec.Signal, rec.Status, rec.Reason})
}
