package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"sandbox/client"
)

const (
	terminalText   = 32 << 20 // bytes that are written; a terminal ends lines with one more
	terminalRounds = 15       // at most
)

// measureRestTerminal shows text on a terminal of a box, over TCP, and on one
// of this process.
func measureRestTerminal(ctx context.Context, b *bench) (all []row, err error) {
	s, err := b.theService(ctx)
	if err != nil {
		return nil, err
	}
	err = s.withBox(ctx, func(box string) error {
		shown := pace{rounds: min(b.rounds, terminalRounds)}.interleave(ctx,
			s.as("terminal", func(ctx context.Context) (time.Duration, error) { return s.terminal(ctx, box) }),
			contestant{name: "bare PTY", isolation: "none", run: func(context.Context) (time.Duration, error) {
				return barePTY(filepath.Join(b.rootfs, producer))
			}})
		rate := unit{"MB/s", func(d time.Duration) float64 { return terminalText / d.Seconds() / 1e6 }}
		all = rows(rate, shown, bar{contestant: "ours, terminal", peer: "bare PTY", percentile: 50, limit: 0.7, rate: true})
		return nil
	})
	return all, err
}

// terminal opens a shell on a terminal, has it show the text, and reads to its
// end.
func (s *service) terminal(ctx context.Context, box string) (time.Duration, error) {
	session, err := s.tcp.Terminal(ctx, box, client.TerminalOptions{Shell: "/bin/sh"})
	if err != nil {
		return 0, err
	}
	defer func() { _ = session.Close() }()
	start := time.Now()
	if _, err := fmt.Fprintf(session, "exec %s %d\n", producer, terminalText); err != nil {
		return 0, err
	}
	var shown int64
	_, err = session.Stream(ctx, func(_ bool, p []byte) error {
		shown += int64(len(p))
		return nil
	})
	return time.Since(start), errors.Join(err, allShown(shown))
}

// barePTY runs the program on a terminal of this process and reads that.
func barePTY(program string) (time.Duration, error) {
	cmd := exec.Command(program, strconv.Itoa(terminalText))
	start := time.Now()
	control, err := pty.Start(cmd)
	if err != nil {
		return 0, err
	}
	defer control.Close()
	t, err := drain(int(control.Fd()), make([]byte, bufferSize), start)
	if errors.Is(err, unix.EIO) { // its last user has gone
		err = nil
	}
	return time.Since(start), errors.Join(err, cmd.Wait(), allShown(t.bytes))
}

// allShown wants the text, its line ends doubled.
func allShown(n int64) error {
	if n < terminalText {
		return whole(n, terminalText)
	}
	return nil
}
