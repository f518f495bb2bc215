package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Timeout is how long a peer's command may take before it counts as hung.
const Timeout = time.Minute

// BufferSize is how many bytes every contestant reads at a time: as many as a
// pipe holds.
const BufferSize = 64 << 10

// Command is a program that is timed through the pipe on its stdout. The pipe
// is read by plain read(2) on the caller's thread.
type Command struct {
	Args []string
	NS   Place
}

// Timing says when things happened, counted from before the command's start.
type Timing struct {
	First time.Duration // its first byte was read
	End   time.Duration // its output and its exit status were read
	Bytes int64
}

// Run runs the command to its end. If it fails, the error contains its stderr.
// An interrupt of this program doesn't reach the command, which has its own
// process group.
func (c Command) Run(ctx context.Context) (t Timing, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), Timeout)
	defer cancel()
	stderr, err := os.CreateTemp("", "sandbox-bench-stderr-")
	if err != nil {
		return t, err
	}
	defer stderr.Close()
	if err := os.Remove(stderr.Name()); err != nil {
		return t, err
	}
	err = c.NS.Do(func() (err error) {
		cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Stderr = stderr
		t, err = timed(cmd)
		return err
	})
	if err != nil {
		said := make([]byte, 400)
		n, _ := stderr.ReadAt(said, 0)
		err = fmt.Errorf("%s: %w: %s", strings.Join(c.Args, " "), err, strings.TrimSpace(string(said[:n])))
	}
	return t, err
}

// timed starts cmd, reads its output and waits for it.
func timed(cmd *exec.Cmd) (Timing, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return Timing{}, err
	}
	defer r.Close()
	cmd.Stdout = w
	buf := make([]byte, BufferSize)
	fd := int(r.Fd()) // blocking from here on
	start := time.Now()
	err = cmd.Start()
	w.Close()
	if err != nil {
		return Timing{}, err
	}
	t, err := Drain(fd, buf, start)
	err = errors.Join(err, cmd.Wait())
	t.End = time.Since(start)
	return t, err
}

// Drain reads fd to its end.
func Drain(fd int, buf []byte, start time.Time) (Timing, error) {
	var t Timing
	for {
		n, err := unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return t, err
		case n == 0:
			return t, nil
		case t.Bytes == 0:
			t.First = time.Since(start)
			fallthrough
		default:
			t.Bytes += int64(n)
		}
	}
}

// ReadToEnd reads to the end as every contestant does, 64 KiB at a time.
func ReadToEnd(r io.Reader) (n int64, err error) {
	for buf := make([]byte, BufferSize); ; {
		got, err := r.Read(buf)
		n += int64(got)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// Whole returns an error unless all the wanted bytes came.
func Whole(got, want int64) error {
	if got != want {
		return fmt.Errorf("%d of %d bytes came", got, want)
	}
	return nil
}
