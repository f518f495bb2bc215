package cli

import (
	"bytes"
	"os"
	"testing"
	"testing/synctest"
)

// fed is the input of a command, and tells when it is closed.
type fed struct {
	bytes.Buffer
	closed bool
}

func (f *fed) Close() error {
	f.closed = true
	return nil
}

// TestFeed wants a command's input to end with ours, and not when we leave the command or
// lose our terminal.
func TestFeed(t *testing.T) {
	t.Parallel()
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = r.Close(), w.Close() })
		return r, w
	}
	terminal := func() (r, w *os.File) {
		k := newKeyboard(t)
		return k.tty, k.user
	}
	for name, tt := range map[string]struct {
		in               func() (r, w *os.File)
		tty, leave, gone bool // gone: w is closed; otherwise the copying is stopped
		want             string
		closes           bool
	}{
		"stopped":                             {in: pipe},
		"stopped, and left":                   {in: pipe, leave: true},
		"stopped, to a terminal":              {in: pipe, tty: true},
		"stopped on a terminal":               {in: terminal, tty: true, leave: true},
		"the end of a pipe":                   {in: pipe, leave: true, gone: true, closes: true},
		"the end of a pipe, to a terminal":    {in: pipe, tty: true, leave: true, gone: true, want: endOfInput},
		"our terminal is lost":                {in: terminal, tty: true, gone: true, want: endOfInput},
		"our terminal is lost, no other":      {in: terminal, gone: true, closes: true},
		"our terminal is lost, and left":      {in: terminal, tty: true, leave: true, gone: true},
		"our terminal is lost, no other left": {in: terminal, leave: true, gone: true},
	} {
		var got fed
		r, w := tt.in()
		var stop func()
		synctest.Test(t, func(*testing.T) { // which ends when feed's goroutine has ended
			if stop = feed(r, &got, tt.tty, tt.leave); tt.gone {
				_ = w.Close()
			} else {
				stop()
			}
		})
		stop()
		if got.String() != tt.want || got.closed != tt.closes {
			t.Errorf("%s: the command got %q, closed %v; want %q, %v", name, got.String(), got.closed, tt.want, tt.closes)
		}
	}
}

// A control-D on our terminal ends the input of a command that has none, also of one
// that was joined.
func TestFeedEndsByKey(t *testing.T) {
	t.Parallel()
	var got fed
	k := newKeyboard(t)
	k.typ("x\n\x04")
	var stop func()
	synctest.Test(t, func(*testing.T) { stop = feed(k.tty, &got, false, true) })
	stop()
	if got.String() != "x\n" || !got.closed {
		t.Errorf("the command got %q, closed %v; want a line and the end", got.String(), got.closed)
	}
}
