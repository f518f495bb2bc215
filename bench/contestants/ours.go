package contestants

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sandbox/backend"
	"sandbox/bench/harness"
	"sandbox/core"
	"sandbox/core/local"
	"sandbox/core/options"
	"sandbox/hostcopy"
)

// Ours is the library in this process, with a home of its own.
type Ours struct {
	host   *local.Host
	Home   string
	rootfs string // of its boxes, or image
	image  string
	images int  // how many UnseenToOutput has imported
	keeps  bool // its boxes outlive their end
	Why    string
	Shim   Shim // known once the first box is made
}

const ourIsolation = "user mount pid net ipc uts cgroup ns, cgroup, caps, masked paths, id-mapped overlay, seccomp"

// openOurs opens the library with a home that keeps pool boxes ready.
func openOurs(b *Field, home string, pool int) *Ours {
	o := &Ours{Home: home, rootfs: b.Rootfs}
	err := os.MkdirAll(home, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(home, "config.toml"), fmt.Appendf(nil, "pool = %d\n", pool), 0o600)
	}
	if err == nil {
		o.host, err = local.Open(local.Config{Home: o.Home, Beside: b.Tools, Owned: true})
	}
	if err != nil {
		o.Why = err.Error()
	}
	return o
}

// OursAt returns the library with a home at this path, which is made, and no pool. The
// caller closes it.
func (b *Field) OursAt(home string) *Ours { return openOurs(b, home, 0) }

// Keeping returns a second library on the home, one that keeps the records of boxes in
// memory, as a daemon's does. The caller closes it.
func (o *Ours) Keeping(b *Field) *Ours {
	second := &Ours{Home: o.Home, Why: o.Why}
	host, err := local.Open(local.Config{Home: o.Home, Beside: b.Tools, Cached: true})
	if second.host = host; err != nil {
		second.Why = err.Error()
	}
	return second
}

// Contestant returns the library as a contestant that does run.
func (o *Ours) Contestant(run func(context.Context) (time.Duration, error)) harness.Contestant {
	return harness.Contestant{Name: "ours", Version: core.Version, Isolation: ourIsolation, Why: o.Why, Run: run}
}

// As returns the library as a contestant that does one of several things.
func (o *Ours) As(what string, run func(context.Context) (time.Duration, error)) harness.Contestant {
	c := o.Contestant(run)
	c.Name += ", " + what
	return c
}

// Alone returns the one row of a measurement that has no peers. measure fills
// in its figures.
func (o *Ours) Alone(unit string, n int, measure func(*harness.Row) error) []harness.Row {
	r := harness.Row{Contestant: "ours", Version: core.Version, Isolation: ourIsolation, Unit: unit, N: n, DidNotRun: o.Why}
	if r.DidNotRun == "" {
		if err := measure(&r); err != nil {
			r.DidNotRun = err.Error()
		}
	}
	return []harness.Row{r}
}

// Create makes a box with all isolation on. more may change its options.
func (o *Ours) Create(ctx context.Context, more ...func(*options.Box)) (*core.Box, error) {
	opts := options.Defaults()
	opts.RootfsPath, opts.Image = o.rootfs, o.image
	opts.CPUs, opts.AutoRemove = 1, !o.keeps
	for _, change := range more {
		change(&opts)
	}
	return o.CreateWith(ctx, opts)
}

// CreateDefault makes a box with the default options.
func (o *Ours) CreateDefault(ctx context.Context) (*core.Box, error) {
	opts := options.Defaults()
	opts.RootfsPath, opts.Image = o.rootfs, o.image
	return o.CreateWith(ctx, opts)
}

// CreateWith makes a box with these options. The first box shows which process
// is the shim.
func (o *Ours) CreateWith(ctx context.Context, opts options.Box) (*core.Box, error) {
	box, _, err := o.host.Create(ctx, opts)
	if err == nil && o.Shim.pid == 0 {
		o.Shim, err = parentOf(ctx, box)
	}
	return box, err
}

// Files returns the files of a box, as `sandbox cp` copies them.
func (o *Ours) Files(box *core.Box) hostcopy.Box {
	return backend.Files{On: backend.OnHost(o.host), Ref: box.ID()}
}

// Remove removes a box by force, even if ctx has ended.
func (o *Ours) Remove(ctx context.Context, box *core.Box) error {
	return o.host.Remove(context.WithoutCancel(ctx), box.ID(), true)
}

// Exec runs args in box to the exit status, reading on this thread.
func (o *Ours) Exec(ctx context.Context, box *core.Box, args ...string) (harness.Timing, error) {
	var t harness.Timing
	buf := make([]byte, harness.BufferSize)
	start := time.Now()
	e, err := box.Exec(ctx, options.Exec{Cmd: args})
	if err != nil {
		return t, err
	}
	defer e.Close()
	status, err := e.Stream(ctx, buf, func(_ bool, p []byte) error {
		if t.Bytes == 0 {
			t.First = time.Since(start)
		}
		t.Bytes += int64(len(p))
		return nil
	})
	t.End = time.Since(start)
	if err == nil && (status.ExitCode != 0 || t.Bytes == 0) {
		err = fmt.Errorf("%v in %s: %+v after %d bytes", args, box.ID(), status, t.Bytes)
	}
	return t, err
}

// Steps makes, uses and removes a box and times each step: create, the first
// exec to its first byte, to its exit status, and the removal.
func (o *Ours) Steps(ctx context.Context) (took [4]time.Duration, err error) {
	if o.Why != "" {
		return took, errors.New(o.Why)
	}
	start := time.Now()
	box, err := o.Create(ctx)
	if err != nil {
		return took, err
	}
	took[0] = time.Since(start)
	t, err := o.Exec(ctx, box, Hello...)
	took[1], took[2] = t.First, t.End
	start = time.Now()
	err = errors.Join(err, o.Remove(ctx, box))
	took[3] = time.Since(start)
	return took, err
}

// CreateToOutput makes a box and runs a command in it, to the first byte. The
// box's removal is not in the time.
func (o *Ours) CreateToOutput(ctx context.Context) (time.Duration, error) {
	took, err := o.Steps(ctx)
	return took[0] + took[1], err
}

// Life makes a box, runs a command in it to its exit status, and removes the box.
func (o *Ours) Life(ctx context.Context) (time.Duration, error) {
	took, err := o.Steps(ctx)
	return took[0] + took[2] + took[3], err
}

// CallsOfCreate returns how many system calls of the shim and of libcontainer a create
// takes. Those of the box's init are not among them: the kernel lets nobody count what
// a program does that its own user may not read.
func (o *Ours) CallsOfCreate(ctx context.Context) (n int, err error) {
	if o.Shim.pid == 0 { // the first box starts the shim
		if _, err := o.Steps(ctx); err != nil {
			return 0, err
		}
	}
	calls, err := harness.CountCalls(o.Shim.pid)
	if err != nil {
		return 0, err
	}
	defer calls.Close() //nolint:errcheck // nothing is left to be done with it
	box, err := o.Create(ctx)
	if err != nil {
		return 0, err
	}
	n, err = calls.Sum()
	return n, errors.Join(err, o.Remove(ctx, box))
}

// Close closes the home and waits until its shim has ended.
func (o *Ours) Close(ctx context.Context) error {
	if o == nil || o.host == nil {
		return nil
	}
	if err := o.host.Close(ctx); err != nil {
		return err
	}
	return o.Shim.wait(30 * time.Second)
}

// Hello is the command that most measurements run.
var Hello = []string{"/bin/echo", "hi"}

// Batch makes boxes up to their first output. They are removed afterwards,
// which is not in the time.
func (o *Ours) Batch(ctx context.Context, n int) (time.Duration, error) {
	boxes, took, err := o.Several(ctx, n)
	for _, box := range boxes {
		err = errors.Join(err, o.Remove(ctx, box))
	}
	return took, err
}

// Several makes n boxes up to their first output, as many at once as all
// measurements do. It returns the boxes that were made even if it fails.
func (o *Ours) Several(ctx context.Context, n int) ([]*core.Box, time.Duration, error) {
	boxes := make([]*core.Box, n)
	took, err := harness.AtOnce(n, harness.BoxesAtOnce, func(i int) error {
		box, err := o.Create(ctx)
		if err != nil {
			return err
		}
		boxes[i] = box
		_, err = o.Exec(ctx, box, Hello...)
		return err
	})
	return slices.DeleteFunc(boxes, func(box *core.Box) bool { return box == nil }), took, err
}

// List lists the boxes of the home, of which there must be n.
func (o *Ours) List(ctx context.Context, n int) (time.Duration, error) {
	start := time.Now()
	all, err := o.host.List(ctx)
	took := time.Since(start)
	if err == nil && len(all) != n {
		err = fmt.Errorf("the list has %d boxes of %d", len(all), n)
	}
	return took, err
}

// Idle makes n boxes and uses each once, because the memory that init needs for
// its first exec counts. It returns the boxes that were made even if it fails.
func (o *Ours) Idle(ctx context.Context, n int) ([]*core.Box, error) {
	var boxes []*core.Box
	for range n {
		box, err := o.Create(ctx)
		if err != nil {
			return boxes, err
		}
		boxes = append(boxes, box)
		if _, err := o.Exec(ctx, box, Hello...); err != nil {
			return boxes, err
		}
	}
	return boxes, nil
}

// Leftovers returns what bears one of the ids: directories of the home,
// cgroups, and mounts of this process and of the shim.
func (o *Ours) Leftovers(ids []string) ([]string, error) {
	var left []string
	for _, root := range []string{o.Home, "/sys/fs/cgroup"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it was removed while we walked the tree
			}
			if err == nil && slices.Contains(ids, d.Name()) {
				left = append(left, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for _, pid := range []int{os.Getpid(), o.Shim.pid} {
		mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(mounts)) {
			if slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(line, id) }) {
				left = append(left, strings.TrimSpace(line))
			}
		}
	}
	return left, nil
}
