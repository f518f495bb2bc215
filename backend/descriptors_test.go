package backend

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/sys/unix"

	"sandbox/client"
	"sandbox/core"
)

// commandOn returns a command that a server of the test's has, and ends both. attached
// is the server's side of its session.
func commandOn(t *testing.T, attached func(*websocket.Conn)) *serverCommand {
	t.Helper()
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var up websocket.Upgrader
		ws, err := up.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer ws.Close()
		attached(ws)
		<-over
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	c, err := client.New(client.Options{URL: server.URL, Credential: client.NewApiKeyCredential("sk_" + strings.Repeat("a", 32))})
	if err != nil {
		t.Fatal(err)
	}
	session, err := c.Attach(t.Context(), "box", "exec_a", client.AttachOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x := &serverCommand{Session: session, on: OnServer(c, false).(*serverBoxes), id: "exec_a", input: true}
	t.Cleanup(func() { _, _ = x.Close(), x.on.Close(context.Background()) })
	return x
}

// say sends frames: documents as text, the others, which begin with a stream, as bytes.
func say(t *testing.T, ws *websocket.Conn, frames ...string) {
	t.Helper()
	for _, frame := range frames {
		kind := websocket.BinaryMessage
		if strings.HasPrefix(frame, "{") {
			kind = websocket.TextMessage
		}
		if err := ws.WriteMessage(kind, []byte(frame)); err != nil {
			t.Error(err)
		}
	}
}

// theirs returns the user's end of a pipe of the command.
func theirs(t *testing.T, x *serverCommand, s Stream) *os.File {
	t.Helper()
	if _, err := x.FD(s); err != nil {
		t.Fatal(err)
	}
	return x.fds.theirs[s]
}

// held has a descriptor of a pipe stay open until the test's end, as a process does that
// was forked from this one.
func held(t *testing.T, f *os.File) {
	t.Helper()
	copied := -1
	if err := core.WithFD(f, func(fd int) (err error) {
		copied, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(copied) })
}

// rest reads the output of a command to its end.
func rest(t *testing.T, x *serverCommand) (out string, err error) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute) // a read that never ends fails the test
	defer stop()
	r, err := x.Reader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	buf := make([]byte, 100)
	for {
		n, _, err := r.Read(buf)
		out += string(buf[:n])
		if errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return out, err
		}
	}
}

const exited = `{"type":"exit","exit_code":0,"status":"succeeded","reason":"exited"}`

// A process that the user's has forked holds our ends of the pipes open. The output ends
// all the same, and so does the input, behind what was written to it.
func TestPipesThatAForkHolds(t *testing.T) {
	t.Parallel()
	opened := make(chan struct{})
	var in strings.Builder
	x := commandOn(t, func(ws *websocket.Conn) {
		<-opened
		for {
			kind, p, err := ws.ReadMessage()
			if err != nil {
				t.Error(err)
			}
			if kind == websocket.TextMessage || err != nil {
				break
			}
			in.Write(p)
		}
		say(t, ws, "\x01abc", exited)
	})
	input := theirs(t, x, Stdin)
	held(t, input)
	held(t, x.fds.out)
	if _, err := input.WriteString("all of it"); err != nil {
		t.Fatal(err)
	}
	if err := x.Input().Close(); err != nil {
		t.Fatal(err)
	}
	close(opened)
	if out, err := rest(t, x); err != nil || out != "abc" || in.String() != "all of it" {
		t.Errorf("%q, %v; the input was %q", out, err, in.String())
	}
}

// Output that lies in the pipes unread is for the client that attaches next, and so is
// what did not fit into them.
func TestDetachLeavesWhatIsInThePipes(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]int{"in the pipes": 0, "more than fits": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := make(chan []byte, 1)
			x := commandOn(t, func(ws *websocket.Conn) {
				say(t, ws, `{"type":"ready","stdout_from":100,"stderr_from":0}`, "\x02gone", "\x01hello"+strings.Repeat("x", more))
				_, p, err := ws.ReadMessage()
				if err != nil {
					t.Error(err)
				}
				told <- p
				_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
			})
			stdout, stderr := theirs(t, x, Stdout), theirs(t, x, Stderr)
			if _, err := io.ReadFull(stdout, make([]byte, 2)); err != nil { // behind this standard error was passed on
				t.Fatal(err)
			}
			if _, err := io.ReadFull(stderr, make([]byte, 3)); err != nil {
				t.Fatal(err)
			}
			if err := x.Detach(); err != nil {
				t.Fatal(err)
			}
			var m struct{ Stdout, Stderr int64 }
			if p := <-told; json.Unmarshal(p, &m) != nil || m.Stdout != 102 || m.Stderr != 3 {
				t.Errorf("the server was told %s", p)
			}
		})
	}
}

// A gap in the output, as of a main command that is read too slowly, is not its end.
func TestPipesGoOnBehindAGap(t *testing.T) {
	t.Parallel()
	x := commandOn(t, func(ws *websocket.Conn) {
		say(t, ws, "\x01abc", `{"type":"gap","stdout_from":100,"stderr_from":0}`, "\x01def", exited)
	})
	theirs(t, x, Stdout)
	if out, err := rest(t, x); err != nil || out != "abcdef" {
		t.Errorf("%q, %v", out, err)
	}
}

// Who waits for the end of a command drops its output, and is not stopped by a gap in it.
func TestDrainGoesOnBehindAGap(t *testing.T) {
	t.Parallel()
	x := commandOn(t, func(ws *websocket.Conn) {
		say(t, ws, "\x01abc", `{"type":"gap","stdout_from":100,"stderr_from":0}`, "\x01def", exited)
	})
	r, err := x.Reader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Drain(); err != nil || r.Status().ExitCode != 0 || !x.ended.Load() {
		t.Errorf("%v, %+v", err, r.Status())
	}
}
