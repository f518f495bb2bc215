package soak_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"sandbox/api"
)

// wanted is a command and what it prints and ends with.
type wanted struct {
	script string
	out    [2]string // stdout, stderr
	code   int
}

// numbered is a command that prints numbered lines of a key on both streams, with
// pauses, so that disturbances meet it at work.
func numbered(rng *rand.Rand, key string) wanted {
	lines, pauses, code := 50+rng.IntN(1500), rng.IntN(8), rng.IntN(5)
	var out, errs strings.Builder
	for i := range lines {
		fmt.Fprintf(&out, "%s %d\n", key, i)
		if i%10 == 0 {
			fmt.Fprintf(&errs, "%s e%d\n", key, i)
		}
	}
	every := lines/(pauses+1) + 1
	script := fmt.Sprintf(`i=0; while [ $i -lt %d ]; do echo %s $i; [ $((i%%10)) = 0 ] && echo %s e$i >&2; [ $((i%%%d)) = %d ] && sleep 0.2; i=$((i+1)); done; exit %d`,
		lines, key, key, every, every-1, code)
	return wanted{script, [2]string{out.String(), errs.String()}, code}
}

// keyed returns bytes that follow from a key, not text.
func keyed(rng *rand.Rand, most int) []byte {
	b := make([]byte, rng.IntN(most))
	for i := 0; i+8 <= len(b); i += 8 {
		for n, j := rng.Uint64(), i; j < i+8; j++ {
			b[j], n = byte(n), n>>8
		}
	}
	return b
}

// checker compares output with what is wanted, piece by piece, over many
// connections.
type checker struct {
	want  wanted
	got   [2]int // bytes of each stream that came
	after int64  // the last event
	exit  *api.Exit
	// full tells whether the disk has been full since the command began. What
	// nobody held may then have been dropped, which is told by a gap to who reads
	// events, and by the offset at which it begins to who attaches.
	full    func() bool
	dropped int
}

var errCut = errors.New("the reader was cut")

// take compares the next bytes of a stream.
func (c *checker) take(stream int, p []byte) error {
	at, want := c.got[stream], c.want.out[stream]
	if !strings.HasPrefix(want[at:], string(p)) && c.full() {
		if skipped := strings.Index(want[at:], string(p)); skipped >= 0 {
			c.skip(stream, at+skipped)
			at += skipped
		}
	}
	if !strings.HasPrefix(want[at:], string(p)) {
		return &wrongOutput{fmt.Sprintf("stream %d at byte %d: %.60q, want %.60q", stream+1, at, p, want[min(at, len(want)):])}
	}
	c.got[stream] += len(p)
	return nil
}

// skip goes on at an offset of a stream behind what was dropped.
func (c *checker) skip(stream, to int) {
	c.dropped += to - c.got[stream]
	c.got[stream] = to
}

// wrongOutput is output that is not what the command wrote.
type wrongOutput struct{ text string }

func (w *wrongOutput) Error() string { return "wrong output: " + w.text }

// event takes an event of output, or the end.
func (c *checker) event(e api.Event) error {
	switch {
	case e.Gap != nil && !c.full():
		return &wrongOutput{fmt.Sprintf("a gap: %+v behind event %d", *e.Gap, c.after)}
	case e.Gap != nil:
		c.skip(0, int(e.Gap.StdoutFrom))
		c.skip(1, int(e.Gap.StderrFrom))
		c.after = e.Gap.To
		return nil
	case e.Exit != nil:
		c.exit = e.Exit
		return nil
	}
	if e.Log.Seq != c.after+1 {
		return &wrongOutput{fmt.Sprintf("event %d behind event %d", e.Log.Seq, c.after)}
	}
	b, err := e.Log.Bytes()
	if err != nil {
		return err
	}
	c.after = e.Log.Seq
	stream := 0
	if e.Log.Stream == api.Stderr {
		stream = 1
	}
	return c.take(stream, b)
}

// missing returns how many bytes have not come.
func (c *checker) missing() int64 {
	return int64(len(c.want.out[0]) - c.got[0] + len(c.want.out[1]) - c.got[1])
}
