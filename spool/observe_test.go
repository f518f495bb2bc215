package spool

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sandbox/core/options"
)

// counting prints 1,000,000 numbers of seven digits and a newline: what stands at a
// byte follows from its offset.
const counting = "seq -w 1 1000000"

func counted8(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for n := 1; n <= 1000000; n++ {
		digits := []byte("0000000\n")
		for i, left := 6, n; left > 0; i, left = i-1, left/10 {
			digits[i] = byte('0' + left%10)
		}
		b.Write(digits)
	}
	return b.String()
}

// observed reads an exec's stdout to its end, and returns pieces of it by the offset
// at which they begin.
func observed(t *testing.T, o *Observer) map[int64]string {
	t.Helper()
	out, at := map[int64]string{}, o.from[Stdout]
	for buf := make([]byte, 64<<10); ; {
		_, n, err := o.Next(buf)
		if missed := (Missed{}); errors.As(err, &missed) {
			at = missed.At[Stdout]
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		out[at] += string(buf[:n])
		if ended, _ := o.Ended(); ended {
			return out
		}
		if n == 0 {
			if err := o.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestObserve has two observers read what an attached client reads too.
func TestObserve(t *testing.T) {
	t.Parallel()
	h := newHome(t, 1<<20)
	e := h.exec(t, options.Exec{Cmd: []string{"sh", "-c", "read go; " + counting}, Stdin: true})
	read := make(chan map[int64]string, 2)
	for _, skip := range []int64{0, 1000} {
		o, err := e.Observe([2]int64{skip})
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		go func() { read <- observed(t, o) }()
	}
	a, err := e.Attach([2]int64{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	command, err := a.Command()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := command.Stdin().WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	want := counted8(t)
	if got := readAll(t, a); got != want {
		t.Errorf("the attached client got %d bytes", len(got))
	}
	for range 2 {
		if got := <-read; len(got) != 1 || got[0] != want {
			t.Errorf("an observer got %d pieces, the first of %d bytes", len(got), len(got[0]))
		}
	}
}

// TestLateObserver checks that an observer that does not read holds nobody up, and
// that it is told where it goes on.
func TestLateObserver(t *testing.T) {
	t.Parallel()
	h := newHome(t, 1<<20)
	h.timeout = 100 * time.Millisecond
	e := h.sh(t, counting)
	o, err := e.Observe([2]int64{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if err := e.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	want, got := counted8(t), observed(t, o)
	if len(got) != 1 || got[0] != "" {
		t.Errorf("got %d pieces, and %d bytes from the beginning", len(got), len(got[0]))
	}
	for at, piece := range got {
		if at == 0 || piece != want[at:] {
			t.Errorf("from byte %d on came %d bytes, not %d", at, len(piece), len(want)-int(at))
		}
	}
}
