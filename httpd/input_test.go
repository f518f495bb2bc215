package httpd_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"golang.org/x/sys/unix"

	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/httpd"
	"sandbox/spool"
	"sandbox/test/boxes"
)

// waiting is a command that prints what it is told, reads nothing of its input until it is
// told to, and then prints how many bytes there were.
type waiting struct {
	*service
	path    string // of the exec
	exec    *spool.Exec
	command *core.Exec
	words   *os.File
}

// startWaiting starts one; with has more members of the request.
func startWaiting(t *testing.T, with string) waiting {
	t.Helper()
	outputs := spool.Open(spool.Config{Dir: filepath.Join(t.TempDir(), "spool")})
	t.Cleanup(outputs.Close)
	w := waiting{service: start(t, func(c *httpd.Config) { c.Spool = outputs })}
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, unix.Mkfifo(fifo, 0o600))
	box := w.create(`{}`)
	id, _ := w.ask("POST", "/v1/boxes/"+box+"/exec", `{"cmd":"exec 3< `+fifo+`; until [ \"$x\" = read ]; do read x <&3; echo $x; done; wc -c",`+with+`}`).want(t, 201, "").json["id"].(string)
	w.path = "/v1/boxes/" + box + "/exec/" + id
	var err error
	w.exec, err = outputs.Get(box, id)
	must(t, err)
	a, err := w.exec.Attach([2]int64{})
	must(t, err)
	defer a.Close()
	w.command, err = a.Command()
	must(t, err)
	w.words, err = os.OpenFile(fifo, os.O_WRONLY, 0)
	must(t, err)
	t.Cleanup(func() { check(t, w.words.Close()) })
	return w
}

// visit has a client attach, and break off without a word.
func (w waiting) visit() {
	w.t.Helper()
	must(w.t, w.attach(w.path, "").Close())
	boxes.Await(w.t, "the client to leave", w.alone)
}

// alone returns whether no client is attached any more.
func (w waiting) alone() bool {
	a, err := w.exec.Attach([2]int64{})
	if err == nil {
		a.Close()
	}
	return err == nil
}

// tell tells the command a word.
func (w waiting) tell(word string) {
	w.t.Helper()
	_, err := w.words.WriteString(word + "\n")
	must(w.t, err)
}

// held returns how many bytes wait in the pipe.
func (w waiting) held() (n int) {
	w.t.Helper()
	must(w.t, w.command.Stdin().WithFD(func(fd int) (err error) {
		n, err = unix.IoctlGetInt(fd, unix.TIOCINQ)
		return err
	}))
	return n
}

// read has the command read, and returns how many bytes it counts up to the end of its input.
func (w waiting) read() int {
	w.t.Helper()
	w.tell("read")
	_, count, _ := strings.Cut(w.observe(w.path, "").until(""), "read\n")
	n, _ := strconv.Atoi(strings.TrimSpace(count)) // a command that was ended has counted none
	return n
}

// much is more than a pipe holds.
const much = 1_000_000

// TestInputBesideReaders has clients come and go that write nothing, while the input
// that a command was started with waits for it.
func TestInputBesideReaders(t *testing.T) {
	t.Parallel()
	w := startWaiting(t, `"stdin":"`+strings.Repeat("x", much)+`"`)
	boxes.Await(t, "a full pipe", func() bool { return w.held() > 32<<10 })
	for range 200 {
		w.visit()
	}
	if n := w.read(); n != much {
		t.Errorf("the command read %d bytes of %d", n, much)
	}
}

// fill has a request's input wait in the middle of a piece, because the pipe is full. It
// returns what tells how many bytes were taken, and why no more.
func (w waiting) fill(ctx context.Context) <-chan written {
	w.t.Helper()
	w.ask("POST", w.path+":write_stdin", "x").want(w.t, 200, "") // all by itself in a page, so that the last piece does not fit
	wrote := make(chan written, 1)
	go func() {
		n, err := w.exec.WriteStdin(ctx, strings.NewReader(strings.Repeat("x", much)), true)
		if err != nil && ctx.Err() == nil { // or the command would wait for more, and the test for it
			_ = w.exec.Cancel(w.t.Context(), 0)
		}
		wrote <- written{int(n), err}
	}()
	boxes.Await(w.t, "a full pipe", func() bool { return w.held() == 15*os.Getpagesize()+1 })
	return wrote
}

type written struct {
	n   int
	err error
}

// TestWriteStdinBesideWriter has a client break off whose own input waits behind that of
// a request, which goes on.
func TestWriteStdinBesideWriter(t *testing.T) {
	t.Parallel()
	w := startWaiting(t, `"stdin_open":true`)
	wrote := w.fill(t.Context())
	c := w.attach(w.path, "")
	c.typ("y")
	must(t, c.Close())
	boxes.Await(t, "the client to leave", func() bool {
		w.tell("output") // which can't be sent any more
		return w.alone()
	})
	n := w.read()
	if got := <-wrote; got.err != nil || n != 1+much {
		t.Errorf("the command read %d bytes of %d, and the request ended with %+v", n, 1+much, got)
	}
}

// TestInputBehindCut has an attached client write while a request's input waits, which
// is broken off then.
func TestInputBehindCut(t *testing.T) {
	t.Parallel()
	for range 5 {
		w := startWaiting(t, `"stdin_open":true`)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wrote := w.fill(ctx)
		c := w.attach(w.path, "")
		pong := make(chan struct{})
		c.SetPongHandler(func(string) error { close(pong); return nil })
		must(t, c.WriteMessage(websocket.PingMessage, nil))
		c.typ(strings.Repeat("y", 10_000))
		must(t, c.WriteMessage(websocket.TextMessage, []byte(`{"type":"eof"}`)))
		go c.rest()
		<-pong // it is about to write
		cancel()
		cut := <-wrote
		if want := 1 + cut.n + 10_000; !fault.Is(cut.err, fault.Canceled) || w.read() != want {
			t.Fatalf("the command did not read %d bytes; the request ended with %+v", want, cut)
		}
	}
}
