package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// timeout is how long a peer's command may take before it counts as hung.
const timeout = time.Minute

// bufferSize is what everyone reads at a time: what a pipe holds.
const bufferSize = 64 << 10

// command is a program that is timed through the pipe on its stdout, which is
// read by plain read(2) on the caller's thread.
type command struct {
	args []string
	ns   place
}

// timing is when what happened, from before the command's start.
type timing struct {
	first time.Duration // its first byte was read
	end   time.Duration // its output and its exit status were read
	bytes int64
}

// run runs the command to its end. Its failure carries its stderr. An
// interrupt of this program doesn't reach it: it has its own process group.
func (c command) run(ctx context.Context) (t timing, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	stderr, err := os.CreateTemp("", "sandbox-bench-stderr-")
	if err != nil {
		return t, err
	}
	defer stderr.Close()
	if err := os.Remove(stderr.Name()); err != nil {
		return t, err
	}
	err = c.ns.do(func() (err error) {
		cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Stderr = stderr
		t, err = timed(cmd)
		return err
	})
	if err != nil {
		said := make([]byte, 400)
		n, _ := stderr.ReadAt(said, 0)
		err = fmt.Errorf("%s: %w: %s", strings.Join(c.args, " "), err, strings.TrimSpace(string(said[:n])))
	}
	return t, err
}

// timed starts cmd, reads its output and waits for it.
func timed(cmd *exec.Cmd) (timing, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return timing{}, err
	}
	defer r.Close()
	cmd.Stdout = w
	buf := make([]byte, bufferSize)
	fd := int(r.Fd()) // blocking from here on
	start := time.Now()
	err = cmd.Start()
	w.Close()
	if err != nil {
		return timing{}, err
	}
	t, err := drain(fd, buf, start)
	err = errors.Join(err, cmd.Wait())
	t.end = time.Since(start)
	return t, err
}

// drain reads fd to its end.
func drain(fd int, buf []byte, start time.Time) (timing, error) {
	var t timing
	for {
		n, err := unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return t, err
		case n == 0:
			return t, nil
		case t.bytes == 0:
			t.first = time.Since(start)
			fallthrough
		default:
			t.bytes += int64(n)
		}
	}
}
