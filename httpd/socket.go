package httpd

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/sys/unix"

	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// Bounds of a WebSocket. A frame of input goes on in pieces, so its size costs
// no memory.
const (
	maxFrame    = 16 << 20
	maxControl  = 64 << 10
	inputBuffer = 32 << 10
	// silent is how many pings a client over TCP may leave unanswered while
	// nothing keeps it from answering.
	silent = 4
	// farewell is how long a client has to take the last frames.
	farewell = 2 * time.Second
)

// subprotocol is what a client that speaks this protocol offers.
const subprotocol = "sandbox.v1"

// socket is a WebSocket that shows one command. One goroutine writes output,
// one reads the client's frames, one sends pings.
type socket struct {
	*websocket.Conn
	remote bool          // over TCP: an end of the client may go unnoticed
	beat   time.Duration // between two pings
	heard  atomic.Int64  // when a frame came last, in ns
	busy   atomic.Int32  // writes that wait: for the client, or for the command
	ends   sync.WaitGroup
}

// mustUpgrade refuses a request that is none for a WebSocket, before anything
// is begun for it. Errors: Malformed.
func (r *request) mustUpgrade() error {
	if !websocket.IsWebSocketUpgrade(r.Request) {
		return fault.New(fault.Malformed, "this is a WebSocket: send Connection: Upgrade and Upgrade: websocket")
	}
	return nil
}

// upgrade answers with a WebSocket. Errors: Malformed.
func (s *Server) upgrade(w http.ResponseWriter, r *request) (*socket, error) {
	var why error
	u := websocket.Upgrader{
		// A page of another site has no key to offer: nothing is sent along by itself.
		CheckOrigin: func(*http.Request) bool { return true },
		Error:       func(_ http.ResponseWriter, _ *http.Request, _ int, err error) { why = err },
	}
	conn, err := u.Upgrade(w, r.Request, http.Header{"Sec-Websocket-Protocol": r.chosen()})
	if err != nil {
		return nil, fault.Wrap(fault.Malformed, errors.Join(why, err), "no WebSocket")
	}
	c := &socket{Conn: conn, remote: r.by == ByKey, beat: s.Heartbeat}
	c.SetReadLimit(maxFrame)
	c.listening()
	c.SetPongHandler(func(string) error { c.listening(); return nil })
	return c, nil
}

// chosen returns the subprotocol to select of those that are offered: the one
// that carries the key only where it is alone.
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

func (c *socket) listening() { c.heard.Store(time.Now().UnixNano()) }

// control is a text frame of a client (contract, section 5).
type control struct {
	Type   string `json:"type"`
	Cols   int    `json:"cols"`
	Rows   int    `json:"rows"`
	Signal string `json:"signal"`
}

// console is what a client's frames act on.
type console struct {
	input  func([]byte) error
	resize func(cols, rows int) error
	signal func(name string) error
	eof    func() error
}

// errHungUp is the end of a client's frames: it has closed, or has gone.
var errHungUp = errors.New("the client has hung up")

// serve reads the client's frames, and pings it, until it goes or sends what
// is not understood; done gets the reason. show ends with the context that it
// gets, which ends then too. The connection is closed afterwards.
func (c *socket) serve(ctx context.Context, on console, show func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.ends.Go(func() { cancel(c.receive(on)) })
	c.ends.Go(func() { c.ping(ctx, cancel) })
	// A write that waits for the client ends with the connection at the latest.
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(farewell, func() { _ = c.Close() }) })
	err := show(ctx)
	stop()
	if cause := context.Cause(ctx); ctx.Err() != nil && cause != nil {
		err = cause
	}
	c.leave(err)
	cancel(nil)
	_ = c.Close()
	return err
}

// receive reads frames.
func (c *socket) receive(on console) error {
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

func (c *socket) control(frame io.Reader, on console) error {
	doc, err := io.ReadAll(io.LimitReader(frame, maxControl+1))
	if err != nil {
		return errHungUp
	}
	if len(doc) > maxControl {
		return errTooLarge(maxControl)
	}
	var m control
	if err := options.Strict(doc, &m); err != nil {
		return err
	}
	switch m.Type {
	case "resize":
		if m.Cols < 1 || m.Cols > maxSide || m.Rows < 1 || m.Rows > maxSide {
			return invalid("cols", "range", "and rows must be from 1 to 65535")
		}
		return on.resize(m.Cols, m.Rows)
	case "signal":
		return on.signal(m.Signal)
	case "eof":
		return on.eof()
	}
	return invalid("type", "value", "must be resize, signal or eof")
}

// maxSide bounds the columns and rows of a terminal.
const maxSide = 1<<16 - 1

// consoleOf lets a client act on a command. find gives it while it runs; what
// comes for one that has ended is dropped: its exit is on its way.
func consoleOf(ctx context.Context, tty, open bool, find func() (*core.Exec, error)) console {
	on := func(do func(*core.Exec) error) error {
		command, err := find()
		if err == nil {
			err = do(command)
		}
		if fault.Is(err, fault.InvalidState) {
			return nil
		}
		return err
	}
	return console{
		input: func(p []byte) error {
			if !open {
				return fault.New(fault.InvalidArgument, "the command takes no input: start it with stdin_open or tty")
			}
			return on(func(x *core.Exec) error { _, _ = x.Stdin().Write(p); return nil }) // it may have closed its end
		},
		resize: func(cols, rows int) error {
			if !tty {
				return fault.New(fault.InvalidArgument, "the command has no terminal to resize")
			}
			return on(func(x *core.Exec) error { return x.Resize(ctx, cols, rows) })
		},
		signal: func(name string) error {
			sig := unix.SignalNum("SIG" + strings.TrimPrefix(name, "SIG"))
			if sig == 0 {
				return invalid("signal", "value", "must be a signal's name, such as INT")
			}
			return on(func(x *core.Exec) error { return send(ctx, x, tty, sig) })
		},
		eof: func() error {
			if tty {
				return on(func(x *core.Exec) error { _, _ = x.Stdin().WriteString(endOfInput); return nil })
			}
			return on(func(x *core.Exec) error { return x.CloseStdin(ctx) })
		},
	}
}

// send sends a signal to a command. Those that a key of the terminal sends go
// to what is in its foreground, as by the key.
func send(ctx context.Context, x *core.Exec, tty bool, sig unix.Signal) error {
	if tty && (sig == unix.SIGINT || sig == unix.SIGQUIT || sig == unix.SIGTSTP) {
		err := unix.IoctlSetInt(int(x.Stdin().Fd()), unix.TIOCSIG, int(sig))
		return fault.Wrap(fault.InvalidState, err, "signal the terminal's foreground")
	}
	return x.Signal(ctx, int(sig))
}

// interrupt ends a write to a command's input that waits, so that its
// goroutine ends; renew lets the next one write.
func interrupt(stdin *os.File) {
	if stdin != nil {
		_ = stdin.SetWriteDeadline(time.Unix(1, 0))
	}
}

func renew(stdin *os.File) {
	if stdin != nil {
		_ = stdin.SetWriteDeadline(time.Time{})
	}
}

// ping keeps the connection alive, and ends that of a client that has gone
// without a word. One that can't answer, because it takes no output just now
// or because its command takes no input, is given time: TCP itself tells when
// such a one has died.
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
		if c.remote && time.Since(time.Unix(0, c.heard.Load())) > silent*c.beat {
			cancel(errHungUp)
			return
		}
		// No deadline: what a client takes late, it may take late.
		if c.WriteControl(websocket.PingMessage, nil, time.Now().Add(24*time.Hour)) != nil {
			cancel(errHungUp)
			return
		}
	}
}

// write sends a binary frame; the client may take its time.
func (c *socket) write(p []byte) error {
	c.busy.Add(1)
	defer c.busy.Add(-1)
	if c.WriteMessage(websocket.BinaryMessage, p) != nil {
		return errHungUp
	}
	return nil
}

// tell sends a text frame.
func (c *socket) tell(v any) error {
	doc, err := json.Marshal(v)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "encode a frame")
	}
	c.busy.Add(1)
	defer c.busy.Add(-1)
	if c.WriteMessage(websocket.TextMessage, doc) != nil {
		return errHungUp
	}
	return nil
}

// ready is the first frame of the server. The offsets are an attachment's.
type ready struct {
	Type   string `json:"type"`
	ExecID string `json:"exec_id"`
	Stdout *int64 `json:"stdout_from,omitempty"`
	Stderr *int64 `json:"stderr_from,omitempty"`
}

// exited is the last frame of the server.
type exited struct {
	Type     string `json:"type"`
	ExitCode *int   `json:"exit_code"`
	Signal   *int   `json:"signal"`
}

// trouble is the last frame where something went wrong.
type trouble struct {
	Type    string `json:"type"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// leave says the last words: nothing to one that has gone, an error where
// there is one. Whoever ended well has said its exit.
func (c *socket) leave(err error) {
	if errors.Is(err, errHungUp) {
		return
	}
	_ = c.SetWriteDeadline(time.Now().Add(farewell))
	code := websocket.CloseNormalClosure
	if err != nil {
		code = websocket.CloseInternalServerErr
		if errors.Is(err, context.Canceled) {
			err = fault.New(fault.Unavailable, "the service ends: come again")
		}
		f := fault.Of(err)
		_ = c.tell(trouble{"error", f.Kind.Row().Code, f.Message})
	}
	_ = c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(farewell))
}

// exit tells the end of a command.
func (c *socket) exit(rec core.ExecRecord) error {
	return c.tell(exited{"exit", rec.ExitCode, rec.Signal})
}
