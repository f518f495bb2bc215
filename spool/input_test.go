package spool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// reading is a command that reads its input to the end and prints it.
var reading = options.Exec{Cmd: []string{"cat"}, Stdin: true}

func TestWriteStdin(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e := h.exec(t, reading)
	big := strings.Repeat("0123456789abcdef", 64<<10) // more than a pipe holds
	for _, text := range []string{"", "first\n", big, "last"} {
		if n, err := e.WriteStdin(t.Context(), strings.NewReader(text), false); err != nil || n != int64(len(text)) {
			t.Fatalf("wrote %d of %d bytes: %v", n, len(text), err)
		}
	}
	if err := e.CloseStdin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := attachAll(t, e, [2]int64{}); got[Stdout] != "first\n"+big+"last" {
		t.Errorf("the command read %d bytes", len(got[Stdout]))
	}
	if _, err := e.WriteStdin(t.Context(), strings.NewReader("x"), false); !fault.Is(err, fault.InvalidState) {
		t.Error("after the end:", err)
	}
}

// TestWriteLastStdin ends the input of a command that has read all that it wants, and ended
// since.
func TestWriteLastStdin(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e := h.exec(t, options.Exec{Cmd: []string{"head", "-n", "1"}, Stdin: true})
	ended := readerFunc(func([]byte) (int, error) { return 0, errors.Join(e.Wait(t.Context()), io.EOF) })
	if n, err := e.WriteStdin(t.Context(), io.MultiReader(strings.NewReader("line\n"), ended), true); n != 5 || err != nil {
		t.Errorf("wrote %d bytes: %v", n, err)
	}
	if _, err := e.WriteStdin(t.Context(), strings.NewReader(""), true); !fault.Is(err, fault.InvalidState) {
		t.Error("nothing after the end:", err)
	}
	other := h.exec(t, reading)
	if _, err := other.WriteStdin(t.Context(), strings.NewReader("all"), true); err != nil {
		t.Error(err)
	}
	if got := attachAll(t, other, [2]int64{}); got[Stdout] != "all" {
		t.Errorf("got %q", got[Stdout])
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestWriteStdinInTurn checks that requests at the same time do not mix their bytes.
func TestWriteStdinInTurn(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e := h.exec(t, reading)
	const each = 300_000
	wrote := make(chan error)
	for _, letter := range "ab" {
		go func() {
			_, err := e.WriteStdin(t.Context(), bytes.NewReader(bytes.Repeat([]byte(string(letter)), each)), false)
			wrote <- err
		}()
	}
	if err := errors.Join(<-wrote, <-wrote, e.CloseStdin(t.Context())); err != nil {
		t.Fatal(err)
	}
	got := attachAll(t, e, [2]int64{})[Stdout]
	if len(got) != 2*each || strings.Count(got, "ab")+strings.Count(got, "ba") != 1 {
		t.Errorf("%d bytes, in which the letters change %d times", len(got), strings.Count(got, "ab")+strings.Count(got, "ba"))
	}
}

// TestWriteStdinRefused checks when input is refused, and that a write that nobody
// reads ends with its context and leaves the input as it is.
func TestWriteStdinRefused(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	text := func() io.Reader { return strings.NewReader("text\n") }
	deaf := h.sh(t, "sleep 1000")
	defer func() { _ = deaf.Cancel(context.WithoutCancel(t.Context()), 0) }()
	if _, err := deaf.WriteStdin(t.Context(), text(), false); !fault.Is(err, fault.InvalidArgument) {
		t.Error("a command without input:", err)
	}
	e := h.exec(t, options.Exec{Cmd: []string{"cat"}, Stdin: true})
	a, err := e.Attach([2]int64{})
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"write": second(e.WriteStdin(t.Context(), text(), false)), "close": e.CloseStdin(t.Context()),
	} {
		if !fault.Is(err, fault.InvalidState) {
			t.Errorf("%s beside an attached client: %v", name, err)
		}
	}
	a.Close()
	if err := e.Resize(t.Context(), 80, 24); !fault.Is(err, fault.InvalidArgument) {
		t.Error("resize without a terminal:", err)
	}
	if err := e.CloseStdin(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestWriteStdinCut ends a write to a command that reads nothing.
func TestWriteStdinCut(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e := h.exec(t, options.Exec{Cmd: []string{"sleep", "1000"}, Stdin: true})
	defer func() { _ = e.Cancel(context.WithoutCancel(t.Context()), 0) }()
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, err := e.WriteStdin(ctx, endless{}, false); !fault.Is(err, fault.Canceled) {
		t.Error(err)
	}
}

// endless is input without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func second[A any](_ A, err error) error { return err }
