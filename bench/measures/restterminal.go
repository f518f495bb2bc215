package measures

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
)

const (
	terminalText   = 32 << 20 // bytes that are written; a terminal ends lines with one more
	terminalRounds = 15       // at most
)

// measureRestTerminal shows text on a terminal of a box, over TCP, and on a
// terminal of this process: both alone, and both beside a process that wants one CPU.
func measureRestTerminal(ctx context.Context, b *contestants.Field) (all []harness.Row, err error) {
	s, err := b.Service(ctx)
	if err != nil {
		return nil, err
	}
	err = s.WithBox(ctx, func(box string) error {
		ours := func(ctx context.Context) (time.Duration, error) { return s.Terminal(ctx, box, terminalText) }
		bare := func(context.Context) (time.Duration, error) {
			return barePTY(filepath.Join(b.Rootfs, contestants.Producer))
		}
		shown := harness.Pace{Rounds: min(b.Rounds, terminalRounds)}.Interleave(ctx,
			s.As("terminal", ours), harness.Contestant{Name: "bare PTY", Isolation: "none", Run: bare},
			s.As("terminal, beside one busy", harness.BesideBusy(ours)), harness.Contestant{Name: "bare PTY, beside one busy", Isolation: "none", Run: harness.BesideBusy(bare)})
		rate := harness.PerSecond("MB/s", terminalText/1e6)
		all = harness.Rows(rate, shown,
			harness.Bar{Contestant: "ours, terminal", Peer: "bare PTY", Percentile: 50, Limit: 0.8, Rate: true},
			harness.Bar{Contestant: "ours, terminal, beside one busy", Peer: "bare PTY, beside one busy", Percentile: 50, Limit: 0.7, Rate: true})
		return nil
	})
	return all, err
}

// barePTY runs the program on a terminal of this process and reads the
// terminal.
func barePTY(program string) (time.Duration, error) {
	cmd := exec.Command(program, strconv.Itoa(terminalText))
	start := time.Now()
	control, err := pty.Start(cmd)
	if err != nil {
		return 0, err
	}
	defer control.Close()
	t, err := harness.Drain(int(control.Fd()), make([]byte, harness.BufferSize), start)
	if errors.Is(err, unix.EIO) { // the last process that had the terminal open has ended
		err = nil
	}
	return time.Since(start), errors.Join(err, cmd.Wait(), contestants.AllShown(t.Bytes, terminalText))
}
