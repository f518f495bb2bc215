package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"sandbox/api"
	"sandbox/core/fault"
)

const (
	// frame is how many bytes of input or output are passed on at once: as many
	// as a pipe holds. Larger frames of output are read in pieces.
	frame = 64 << 10
	// maxControl bounds a text frame of the server.
	maxControl = 1 << 20
)

// farewell bounds how long Close waits until its close frame is sent, and goodbye
// how long Stream waits for the server's after Detach.
const (
	farewell = time.Second
	goodbye  = 10 * time.Second
)

// alive is how often a session says that it is there. A server takes a client for
// gone that answers no pings, and pings are answered only while somebody reads.
const alive = 10 * time.Second

// Session is a connection to a running command. One goroutine calls Stream or Read;
// the other methods may be called from any goroutine meanwhile. Its owner closes it.
type Session struct {
	ws     *websocket.Conn
	tagged bool   // frames of output begin with the number of their stream
	server string // for messages

	rest   io.Reader // of the frame of output that is being read, or nil
	stderr bool      // that frame is of standard error
	ended  *Ended    // the command has ended, and its output was read

	mu      sync.Mutex
	had     [2]int64    // bytes of each stream up to the last one that this client had
	leaving bool        // Detach was called: what comes now is for the next client
	beat    *time.Timer // sends the next sign of life

	writing sync.Mutex // gorilla allows one writer
	exec    atomic.Pointer[string]
}

// ErrDetached is what Stream and Read return after Detach.
var ErrDetached error = fault.New(fault.Canceled, "detached from the command, which goes on")

// Ended says how a command ended, as far as a session knows it; [Client.Exec] has
// the rest.
type Ended struct {
	ExitCode *int           `json:"exit_code"` // nil where Stream returns an error
	Signal   *int           `json:"signal"`
	Status   api.ExecStatus `json:"status"` // "" and "" of a server that does not tell them
	Reason   api.Reason     `json:"reason"`
}

// Missed is what Stream and Read return when output was dropped before an observer
// was sent it. The next call reads on, at these bytes of the streams.
type Missed struct{ Stdout, Stderr int64 }

// Error says where the streams go on.
func (m Missed) Error() string {
	return fmt.Sprintf("older output was dropped: stdout goes on at byte %d, stderr at %d", m.Stdout, m.Stderr)
}

// AttachOptions say how many bytes of each stream to leave out. If older output was
// dropped, the session begins at the oldest output that is kept.
type AttachOptions struct {
	AfterStdout, AfterStderr int64
	Resume                   bool // leave out what the last client had that detached
	// Observe has the session only read, beside the one attached client and any
	// number of other observers. It does not hold the command up: see Missed.
	Observe bool
}

// Attach connects to a command in a box. Errors: BoxNotFound, ExecNotFound,
// InvalidState (the command runs and another client is attached, unless this one observes).
func (c *Client) Attach(ctx context.Context, box, id string, o AttachOptions) (*Session, error) {
	if err := checkExec(id); err != nil {
		return nil, err
	}
	path, err := c.boxPath(box, "", "exec", id, "attach")
	if err != nil {
		return nil, err
	}
	query := url.Values{}
	for name, n := range map[string]int64{"after_stdout": o.AfterStdout, "after_stderr": o.AfterStderr} {
		if n > 0 {
			query.Set(name, strconv.FormatInt(n, 10))
		}
	}
	if o.Resume {
		query.Set("resume", "true")
	}
	if o.Observe {
		query.Set("mode", "observe")
	}
	return c.session(ctx, path, query, true)
}

// TerminalOptions say which shell to start, and on what terminal. Empty members
// mean the server's default: /bin/bash, or /bin/sh if there is none, 80 columns, 24
// rows, and xterm-256color.
type TerminalOptions struct {
	Shell      string
	Cols, Rows int
	Term       string
	// Keep has the shell go on when the connection is lost or closed; Attach, with
	// the bytes that were read, joins it again.
	Keep bool
}

// Terminal starts a shell on a terminal in a box. Closing the session ends the
// shell, unless o.Keep is set or Detach was called. Errors: BoxNotFound, InvalidState.
func (c *Client) Terminal(ctx context.Context, box string, o TerminalOptions) (*Session, error) {
	path, err := c.boxPath(box, "", "attach")
	if err != nil {
		return nil, err
	}
	query := url.Values{}
	for name, value := range map[string]string{"shell": o.Shell, "term": o.Term} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for name, n := range map[string]int{"cols": o.Cols, "rows": o.Rows} {
		if n > 0 {
			query.Set(name, strconv.Itoa(n))
		}
	}
	if o.Keep {
		query.Set("keep", "true")
	}
	return c.session(ctx, path, query, false)
}

// session opens the WebSocket of a session.
func (c *Client) session(ctx context.Context, path string, query url.Values, tagged bool) (*Session, error) {
	address := "ws" + strings.TrimPrefix(c.base, "http") + path + "?" + query.Encode()
	header := http.Header{}
	c.credential.authorize(header)
	ws, resp, err := c.open(ctx, address, header)
	switch {
	case errors.Is(err, websocket.ErrBadHandshake) && resp != nil:
		return nil, c.refused(resp)
	case err != nil:
		return nil, c.lost(ctx, err)
	}
	s := &Session{ws: ws, tagged: tagged, server: c.url}
	s.stayAlive(c.alive)
	return s, nil
}

// open opens a WebSocket. The end of ctx ends it, too, while the answer is waited for: the
// dialer itself heeds only its deadline then.
func (c *Client) open(ctx context.Context, address string, header http.Header) (*websocket.Conn, *http.Response, error) {
	stop := func() bool { return true }
	d := c.ws
	d.NetDialContext = func(dialing context.Context, network, host string) (net.Conn, error) {
		conn, err := c.ws.NetDialContext(dialing, network, host)
		if err == nil {
			stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
		}
		return conn, err
	}
	ws, resp, err := d.DialContext(ctx, address, header)
	if !stop() && err == nil {
		_ = ws.Close()
		err = ctx.Err()
	}
	return ws, resp, err
}

// stayAlive sends a pong that nobody asked for again and again, until Close.
func (s *Session) stayAlive(every time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beat = time.AfterFunc(every, func() {
		// A day is as good as no deadline: a server that reads no input is there too.
		if s.ws.WriteControl(websocket.PongMessage, nil, time.Now().Add(24*time.Hour)) != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.beat.Reset(every)
	})
}

// Stream passes each piece of output to sink, and returns how the command ended. p
// is valid until sink returns; a slow sink makes the command wait. Stream returns
// early when sink returns an error or ctx ends; the command then goes on. Errors:
// sink's, and those of Read.
func (s *Session) Stream(ctx context.Context, sink func(stderr bool, p []byte) error) (Ended, error) {
	buf := make([]byte, frame)
	for {
		n, stderr, err := s.Read(ctx, buf)
		switch {
		case errors.Is(err, io.EOF):
			return s.Ended(), nil
		case err != nil:
			return Ended{}, err
		}
		if err := sink(stderr, buf[:n]); err != nil {
			return Ended{}, err
		}
	}
}

// Read waits for output and reads a piece of it into buf. It returns io.EOF when
// the command has ended and its output has been read; Ended then says how. When
// ctx ends during a Read, no later one succeeds. Errors: ErrDetached, ctx's, those
// of the service, Unavailable (the connection was lost), Engine (the box's init
// died under the command: there is no exit code).
func (s *Session) Read(ctx context.Context, buf []byte) (n int, stderr bool, err error) {
	return s.read(ctx, buf, s.count)
}

// ReadAhead reads as Read does for one who passes the output on. It is not counted as
// what this client had before Passed has said so.
func (s *Session) ReadAhead(ctx context.Context, buf []byte) (n int, stderr bool, err error) {
	return s.read(ctx, buf, func(int) bool { return !s.hasLeft() })
}

// Passed counts n bytes of what ReadAhead has read as had by this client. A negative n
// takes back what was counted and did not reach it.
func (s *Session) Passed(stderr bool, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(stderr, n)
}

// read is Read; keep is told of each piece, and says whether to return it.
func (s *Session) read(ctx context.Context, buf []byte, keep func(n int) bool) (n int, stderr bool, err error) {
	if s.ended != nil {
		return 0, false, io.EOF
	}
	defer context.AfterFunc(ctx, func() { _ = s.ws.SetReadDeadline(time.Unix(1, 0)) })()
	for s.ended == nil {
		if s.rest == nil {
			if err := s.next(ctx); err != nil {
				return 0, false, err
			}
			continue
		}
		n, err := s.rest.Read(buf)
		switch {
		case errors.Is(err, io.EOF):
			s.rest = nil
		case err != nil:
			return 0, false, s.lost(ctx, err)
		}
		if n > 0 && keep(n) || len(buf) == 0 {
			return n, s.stderr, nil
		}
	}
	return 0, false, io.EOF
}

// count counts what was read, unless it is for the next client.
func (s *Session) count(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving {
		return false
	}
	s.add(s.stderr, n)
	return true
}

// add counts bytes of a stream. mu is held.
func (s *Session) add(stderr bool, n int) {
	if stderr {
		s.had[1] += int64(n)
	} else {
		s.had[0] += int64(n)
	}
}

// hasLeft tells whether Detach was called.
func (s *Session) hasLeft() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving
}

// Ended says how the command ended, after Read has returned io.EOF.
func (s *Session) Ended() Ended { return *s.ended }

// next waits for a frame. Of one with output, rest is what is to be read.
func (s *Session) next(ctx context.Context) error {
	kind, r, err := s.ws.NextReader()
	if err != nil {
		return s.lost(ctx, err)
	}
	if kind == websocket.BinaryMessage {
		s.rest = r
		return s.stream(ctx)
	}
	doc, err := io.ReadAll(io.LimitReader(r, maxControl))
	if err != nil {
		return s.lost(ctx, err)
	}
	return s.control(doc)
}

// stream reads of which stream a frame has output.
func (s *Session) stream(ctx context.Context) error {
	if !s.tagged {
		return nil
	}
	var tag [1]byte
	if _, err := io.ReadFull(s.rest, tag[:]); errors.Is(err, io.EOF) || err == nil && tag[0] != 1 && tag[0] != 2 {
		return fault.New(fault.Upstream, "%s sent output of an unknown stream", s.server)
	} else if err != nil {
		return s.lost(ctx, err)
	}
	s.stderr = tag[0] == 2
	return nil
}

// control decodes a text frame.
func (s *Session) control(p []byte) error {
	var m struct {
		Type string `json:"type"`
		Ended
		ExecID  string     `json:"exec_id"`
		Stdout  int64      `json:"stdout_from"`
		Stderr  int64      `json:"stderr_from"`
		Code    fault.Kind `json:"code"`
		Message string     `json:"message"`
	}
	if err := json.Unmarshal(p, &m); err != nil {
		return fault.Wrap(fault.Upstream, err, "%s sent a message that can't be read", s.server)
	}
	switch m.Type {
	case "ready":
		s.exec.Store(&m.ExecID)
		s.begin(m.Stdout, m.Stderr)
	case "gap":
		s.begin(m.Stdout, m.Stderr)
		return Missed{m.Stdout, m.Stderr}
	case "exit":
		if err := known(m.ExitCode); err != nil {
			return err
		}
		s.ended = &m.Ended
	case "error":
		return &fault.Error{Kind: m.Code, Message: m.Message}
	}
	return nil // it may be a type that this client does not know
}

// begin notes at which byte of each stream the output goes on.
func (s *Session) begin(stdout, stderr int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.had = [2]int64{stdout, stderr}
}

// lost classifies the failure of a session.
func (s *Session) lost(ctx context.Context, err error) error {
	if s.hasLeft() && websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		return ErrDetached
	}
	if ctx.Err() != nil {
		return fault.Wrap(fault.Of(ctx.Err()).Kind, ctx.Err(), "waiting for %s", s.server)
	}
	return fault.Wrap(fault.Unavailable, err, "the connection to %s was lost", s.server)
}

// Write sends input to the command.
func (s *Session) Write(p []byte) (n int, err error) {
	for n < len(p) {
		piece := p[n:min(len(p), n+frame)]
		if err := s.send(websocket.BinaryMessage, piece); err != nil {
			return n, err
		}
		n += len(piece)
	}
	return n, nil
}

// ExecID returns the id of the command, or "" before Stream has heard of it.
func (s *Session) ExecID() string {
	if id := s.exec.Load(); id != nil {
		return *id
	}
	return ""
}

// Detach leaves the command running, also the shell of [Client.Terminal]. Stream and
// Read then return ErrDetached. The next client that attaches with Resume goes on
// behind what they have returned, or behind what Passed has counted.
func (s *Session) Detach() error {
	s.mu.Lock()
	s.leaving = true
	had := s.had
	s.mu.Unlock()
	err := s.message(map[string]any{"type": "detach", "stdout": had[0], "stderr": had[1]})
	_ = s.ws.SetReadDeadline(time.Now().Add(goodbye))
	return err
}

// CloseInput ends the command's input.
func (s *Session) CloseInput() error { return s.message(map[string]any{"type": "eof"}) }

// Resize sets the size of the command's terminal.
func (s *Session) Resize(cols, rows int) error {
	return s.message(map[string]any{"type": "resize", "cols": cols, "rows": rows})
}

// Signal sends a signal to the command by its name: "INT", "TERM", ... On a
// terminal INT, QUIT and TSTP go to its foreground process group.
func (s *Session) Signal(name string) error {
	return s.message(map[string]any{"type": "signal", "signal": name})
}

func (s *Session) message(m map[string]any) error {
	doc, err := json.Marshal(m)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "write a message")
	}
	return s.send(websocket.TextMessage, doc)
}

func (s *Session) send(kind int, p []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return fault.Wrap(fault.Unavailable, s.ws.WriteMessage(kind, p), "the connection to %s was lost", s.server)
}

// Close ends the session. A command from [Client.Attach] goes on; the shell of
// [Client.Terminal] is hung up.
func (s *Session) Close() error {
	s.mu.Lock()
	s.beat.Stop()
	s.mu.Unlock()
	_ = s.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(farewell))
	return s.ws.Close()
}
