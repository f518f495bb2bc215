package link_test

import (
	"bytes"
	"io"
	"strconv"
	"sync"
	"testing"

	"sandbox/core/engine/wire"
)

// output reads stdout and stderr to their ends.
func (c *caller) output() (out, errs []byte) {
	c.t.Helper()
	var wg sync.WaitGroup
	wg.Go(func() { out, _ = io.ReadAll(c.out) })
	if c.err != nil {
		wg.Go(func() { errs, _ = io.ReadAll(c.err) })
	}
	wg.Wait()
	return out, errs
}

func write(n, seed int) wire.Start {
	return wire.Start{Cmd: []string{"write", strconv.Itoa(n), strconv.Itoa(seed)}}
}

func same(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	t.Fatalf("%s: got %d bytes, want %d; they differ at %d", what, len(got), len(want), at)
}

func TestOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.host()
	for _, n := range []int{0, 1, 70_000, 5 << 20} {
		c := start(t, h, write(n, 3))
		out, errs := c.output()
		same(t, "stdout", out, noise(3, n))
		same(t, "stderr", errs, noise(4, n))
		if s := c.exit(); s.ExitCode != 0 {
			t.Errorf("%+v", s)
		}
		c.leave(wire.TypeRelease)
	}
	w.init.got(wire.TypeRelease, 4)
}

func TestInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.host()
	c := start(t, h, wire.Start{Cmd: []string{"cat"}, Stdin: true})
	want := noise(5, 3<<20)
	var wg sync.WaitGroup
	wg.Go(func() {
		pieces(c.in, want)
		_ = c.in.Close()
	})
	got, _ := c.output()
	wg.Wait()
	same(t, "echo", got, want)
	c.exit()
	c.leave(wire.TypeRelease)
	w.init.got(wire.TypeRelease, 1)
}
