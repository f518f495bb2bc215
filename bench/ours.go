package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandbox/core"
	"sandbox/core/local"
	"sandbox/core/options"
)

// ours is the library in this process, with a home of its own.
type ours struct {
	host         *local.Host
	home, rootfs string
	why          string
	shim         shim // known from the first box on
}

const ourIsolation = "user mount pid net ipc uts cgroup ns, cgroup, caps, masked paths, id-mapped overlay, seccomp"

func openOurs(b *bench, home string) *ours {
	o := &ours{home: home, rootfs: b.rootfs}
	host, err := local.Open(local.Config{Home: o.home, Beside: b.tools, Owned: true})
	if err != nil {
		o.why = err.Error()
	}
	o.host = host
	return o
}

func (o *ours) contestant(run func(context.Context) (time.Duration, error)) contestant {
	return contestant{name: "ours", version: core.Version, isolation: ourIsolation, why: o.why, run: run}
}

// alone makes the one row of a measurement that has no peers. measure fills in
// what it found.
func (o *ours) alone(unit string, n int, measure func(*row) error) []row {
	r := row{Contestant: "ours", Version: core.Version, Isolation: ourIsolation, Unit: unit, N: n, DidNotRun: o.why}
	if r.DidNotRun == "" {
		if err := measure(&r); err != nil {
			r.DidNotRun = err.Error()
		}
	}
	return []row{r}
}

// create makes a box with all isolation on.
func (o *ours) create(ctx context.Context) (*core.Box, error) {
	opts := options.Defaults()
	opts.RootfsPath = o.rootfs
	opts.CPUs = 1
	return o.make(ctx, opts)
}

func (o *ours) make(ctx context.Context, opts options.Box) (*core.Box, error) {
	box, err := o.host.Create(ctx, opts)
	if err == nil && o.shim.pid == 0 {
		o.shim, err = parentOf(ctx, box)
	}
	return box, err
}

func (o *ours) remove(ctx context.Context, box *core.Box) error {
	return o.host.Remove(context.WithoutCancel(ctx), box.ID(), true)
}

// exec runs args in box to the exit status, reading on this thread.
func (o *ours) exec(ctx context.Context, box *core.Box, args ...string) (timing, error) {
	var t timing
	buf := make([]byte, bufferSize)
	start := time.Now()
	e, err := box.Exec(ctx, options.Exec{Cmd: args})
	if err != nil {
		return t, err
	}
	defer e.Close()
	status, err := e.Stream(ctx, buf, func(_ bool, p []byte) error {
		if t.bytes == 0 {
			t.first = time.Since(start)
		}
		t.bytes += int64(len(p))
		return nil
	})
	t.end = time.Since(start)
	if err == nil && (status.ExitCode != 0 || t.bytes == 0) {
		err = fmt.Errorf("%v in %s: %+v after %d bytes", args, box.ID(), status, t.bytes)
	}
	return t, err
}

// steps makes, uses and removes a box and times each step: create, the first
// exec to its first byte, to its exit status, and the removal.
func (o *ours) steps(ctx context.Context) (took [4]time.Duration, err error) {
	if o.why != "" {
		return took, errors.New(o.why)
	}
	start := time.Now()
	box, err := o.create(ctx)
	if err != nil {
		return took, err
	}
	took[0] = time.Since(start)
	t, err := o.exec(ctx, box, hello...)
	took[1], took[2] = t.first, t.end
	start = time.Now()
	err = errors.Join(err, o.remove(ctx, box))
	took[3] = time.Since(start)
	return took, err
}

// createToOutput makes a box and runs a command in it, to the first byte. The
// box's removal is not in the time.
func (o *ours) createToOutput(ctx context.Context) (time.Duration, error) {
	took, err := o.steps(ctx)
	return took[0] + took[1], err
}

// close lets go of the home and waits until its shim has left.
func (o *ours) close(ctx context.Context) error {
	if o == nil || o.host == nil {
		return nil
	}
	if err := o.host.Close(ctx); err != nil {
		return err
	}
	return o.shim.wait(30 * time.Second)
}
