package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"io"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"sandbox/api"
	"sandbox/test/members"
)

func TestRunRemovesItsBox(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	out, errs, code := h.sandbox("run", "-e", "A=hello", "default", "--", "sh", "-c", "echo $A; echo to stderr >&2; exit 7")
	if out != "hello\n" || errs != "to stderr\n" || code != 7 {
		t.Errorf("run: %q, %q, exit %d", out, errs, code)
	}
	if out, _, _ := h.sandbox("ls", "-q"); out != "" {
		t.Errorf("run left %q", out)
	}
}

func TestRunKeepsItsBox(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	_, _, code := h.sandbox("run", "--keep", "-n", "a", "default", "--", "false")
	if out, _, _ := h.sandbox("ls", "-q", "-s", "running"); out == "" || code != 1 {
		t.Errorf("run --keep: exit %d and box %q", code, out)
	}
}

func TestInput(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.create("-n", "a")
	if out, _, _ := h.with(strings.NewReader("x\n"), "exec", "-i", "a", "--", "cat"); out != "x\n" {
		t.Errorf("with -i, cat gave %q", out)
	}
	if out, _, _ := h.with(strings.NewReader("x\n"), "exec", "a", "--", "cat"); out != "" {
		t.Errorf("without -i, cat gave %q", out)
	}
	if _, _, code := h.with(strings.NewReader("x\n"), "exec", "-i", "a", "--", "/nope"); code != 127 {
		t.Errorf("input of a command that does not exist: exit %d", code)
	}
}

// TestBinary passes every byte both ways, more of them than pipes hold.
func TestBinary(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.create("-n", "a")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	sum, written := sha256.New(), make(chan struct{})
	go func() {
		defer close(written)
		defer w.Close()
		_, _ = io.CopyN(io.MultiWriter(w, sum), rand.Reader, 20<<20)
	}()
	got := sha256.New()
	code := h.run(context.Background(), Stdio{r, got, io.Discard}, "exec", "-i", "a", "--", "cat")
	<-written
	if code != 0 || !bytes.Equal(sum.Sum(nil), got.Sum(nil)) {
		t.Errorf("exit %d, and what cat gave differs: %v", code, !bytes.Equal(sum.Sum(nil), got.Sum(nil)))
	}
}

// TestInputIsLeftAlone: what is typed after the command's end is not ours.
func TestInputIsLeftAlone(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.create("-n", "a")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if code := h.run(context.Background(), Stdio{r, io.Discard, io.Discard}, "exec", "-i", "a", "--", "true"); code != 0 {
		t.Fatalf("exit %d", code)
	}
	if _, err := w.WriteString("mine"); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 4)
	if _, err := io.ReadFull(r, p); err != nil || string(p) != "mine" {
		t.Errorf("read %q, %v", p, err)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	_, errs, code := newHost(t).sandbox("run", "--timeout", "0.05", "default", "--", "sleep", "60")
	if code != 143 || !strings.Contains(errs, "--timeout of 50ms") {
		t.Errorf("exit %d, %q", code, errs)
	}
}

// started is a writer that tells when the first byte is written.
type started struct {
	io.Writer
	first chan struct{}
}

func (s *started) Write(p []byte) (int, error) {
	if s.first != nil {
		close(s.first)
		s.first = nil
	}
	return s.Writer.Write(p)
}

func TestSignalEndsTheCommandAndItsBox(t *testing.T) {
	t.Parallel()
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		h := newHost(t)
		ctx, cancel := context.WithCancelCause(context.Background())
		up := make(chan struct{})
		go func() {
			<-up
			cancel(Signal(sig))
		}()
		var out, errs bytes.Buffer
		code := h.run(ctx, Stdio{strings.NewReader(""), &started{&out, up}, &errs},
			"run", "default", "--", "sh", "-c", "trap 'echo bye; exit 1' TERM; echo up; while :; do :; done")
		if code != want || out.String() != "up\nbye\n" || errs.Len() > 0 {
			t.Errorf("%v: exit %d, %q, %q; want exit %d", sig, code, out.String(), errs.String(), want)
		}
		if out, _, _ := h.sandbox("ls", "-q"); out != "" {
			t.Errorf("%v left %q", sig, out)
		}
	}
}

// TestReaderHasGone: like 'sandbox run ... | head -1'.
func TestReaderHasGone(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	var errs bytes.Buffer
	code := h.run(context.Background(), Stdio{strings.NewReader(""), w, &errs}, "run", "default", "--", "yes")
	if code != 141 || errs.Len() > 0 {
		t.Errorf("exit %d, %q; want 141 and no message", code, errs.String())
	}
	if out, _, _ := h.sandbox("ls", "-q"); out != "" {
		t.Errorf("left %q", out)
	}
}

func TestDetached(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.create("-n", "a")
	out, _, code := h.sandbox("exec", "-d", "a", "--", "sleep", "60")
	if code != 0 || !strings.HasPrefix(out, "exec_") || len(out) != len("exec_")+20+1 {
		t.Errorf("exec -d: exit %d, %q", code, out)
	}
}

// keyboard is the far side of the terminal that a command line runs on.
type keyboard struct {
	t    *testing.T
	user *os.File        // what the user types and sees
	tty  *os.File        // what the program reads and writes
	seen strings.Builder // since the last expect
	all  strings.Builder
	code chan int
}

// newKeyboard makes a terminal of 100 x 30.
func newKeyboard(t *testing.T) *keyboard {
	user, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = user.Close(), tty.Close() })
	k := &keyboard{t: t, user: user, tty: tty, code: make(chan int, 1)}
	k.size(100, 30)
	return k
}

// run runs a command line on the terminal; its exit code comes from k.code.
func (k *keyboard) run(h *host, args ...string) {
	go func() { k.code <- h.run(context.Background(), Stdio{k.tty, k.tty, k.tty}, args...) }()
}

func (k *keyboard) size(cols, rows uint16) {
	if err := pty.Setsize(k.user, &pty.Winsize{Cols: cols, Rows: rows}); err != nil {
		k.t.Fatal(err)
	}
}

func (k *keyboard) typ(keys string) {
	if _, err := k.user.WriteString(keys); err != nil {
		k.t.Fatal(err)
	}
}

// expect reads until text was seen since the last expect.
func (k *keyboard) expect(text string) {
	k.t.Helper()
	_ = k.user.SetReadDeadline(time.Now().Add(2 * time.Minute))
	p := make([]byte, 4096)
	for !strings.Contains(k.seen.String(), text) {
		n, err := k.user.Read(p)
		if err != nil {
			k.t.Fatalf("want %q, saw %q: %v", text, k.seen.String(), err)
		}
		k.seen.Write(p[:n])
		k.all.Write(p[:n])
	}
	_, rest, _ := strings.Cut(k.seen.String(), text)
	k.seen.Reset()
	k.seen.WriteString(rest)
}

func TestTerminal(t *testing.T) { // not parallel: it sends SIGWINCH to this process
	h := newHost(t)
	h.create("-n", "a")
	k := newKeyboard(t)
	before := mode(t, k.tty)
	k.run(h, "exec", "-it", "-e", "PS1=ready> ", "a", "--", "sh", "-i")
	k.expect("ready> ")
	k.typ("stty size\n")
	k.expect("30 100\r\n")
	k.size(120, 40)
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil { // the terminal is not this process's own
		t.Fatal(err)
	}
	k.expect("ready> ")
	k.typ("until [ \"$(stty size)\" = '40 120' ]; do :; done; echo re''sized\n")
	k.expect("resized")
	k.expect("ready> ")
	k.typ("sh -c \"echo sl''eeping; exec sleep 60\"\n")
	k.expect("sleeping\r\n")
	k.typ("\x03")
	k.expect("ready> ")
	k.typ("echo code $?\n")
	k.expect("code 130\r\n")
	k.typ("exit 9\n")
	if code := <-k.code; code != 9 {
		t.Errorf("exit %d, want 9", code)
	}
	if after := mode(t, k.tty); !reflect.DeepEqual(before, after) {
		t.Errorf("the terminal's mode was %v and is %v", before, after)
	}
}

func mode(t *testing.T, tty *os.File) *term.State {
	state, err := term.GetState(int(tty.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func TestResultInJSON(t *testing.T) {
	t.Parallel()
	out, errs, code := newHost(t).sandbox("run", "-o", "json", "default", "--", "sh", "-c", `echo hi; printf '\377' >&2; kill -9 $$`)
	var got api.RunResult
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	if got.Stdout != "hi\n" || got.StdoutEncoding != "utf-8" || got.Stderr != "/w==" || got.StderrEncoding != "base64" {
		t.Errorf("result is %s", out)
	}
	members.Equal(t, "a killed command", members.Of{
		"exit status": {code, 137}, "exit code": {got.ExitCode, 137}, "signal": {got.Signal, 9}, "reason": {got.Reason, "signaled"}, "stderr": {errs, ""},
	})
}

func TestResultIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	var c capture
	euros := []byte(strings.Repeat("€", api.MaxOutput/3+2))
	if err := c.Add(false, euros); err != nil {
		t.Fatal(err)
	}
	r := c.result(api.ExitStatus{})
	if !r.Truncated || r.StdoutEncoding != "utf-8" || len(r.Stdout) != api.MaxOutput/3*3 {
		t.Errorf("truncated %v, %s, %d bytes", r.Truncated, r.StdoutEncoding, len(r.Stdout))
	}
}

func TestProgressIsShownOnATerminalOnly(t *testing.T) {
	t.Parallel()
	k := newKeyboard(t)
	m := newMeter(k.tty)
	m.show(api.ImageProgress{Layer: 1, Layers: 2, Stage: api.LayerFetching, Done: 1024, Total: 4096})
	m.show(api.ImageProgress{Layer: 1, Layers: 2, Stage: api.LayerFetching, Done: 2048}) // too soon to be seen
	m.clear()
	k.expect("0 of 2 layers done\r\n  layer 1   fetch  [======                  ] 1.0 KiB of 4.0 KiB\x1b[1A\r\x1b[J")
	var pipe bytes.Buffer
	m = newMeter(&pipe)
	m.show(api.ImageProgress{Layer: 1, Layers: 1})
	m.clear()
	if pipe.Len() > 0 {
		t.Errorf("in a pipe it wrote %q", pipe.String())
	}
}

// A terminal of 0 x 0, which a serial line is, says nothing of a size: the
// command's has the usual one.
func TestTerminalWithoutSize(t *testing.T) { // not parallel: as TestTerminal
	h := newHost(t)
	h.create("-n", "a")
	k := newKeyboard(t)
	k.size(0, 0)
	k.run(h, "exec", "-it", "-e", "PS1=ready> ", "a", "--", "sh", "-i")
	k.expect("ready> ")
	k.typ("stty size\n")
	k.expect("24 80\r\n")
	k.typ("exit 9\n")
	if code := <-k.code; code != 9 {
		t.Errorf("exit %d, want 9", code)
	}
}
