package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sandbox/core"
)

const hammerBoxes = 200

// measureHammer runs the C program c/hammer.c on the home, and looks for what
// it left. A box of ours stays alive beside it, and with it the shim.
func measureHammer(ctx context.Context, b *bench) ([]row, error) {
	r := row{Contestant: "ours", Version: core.Version, Isolation: ourIsolation, Unit: "s", N: hammerBoxes, DidNotRun: b.ours.why}
	if r.DidNotRun != "" {
		return []row{r}, nil
	}
	witness, err := b.ours.create(ctx)
	if err == nil {
		err = errors.Join(r.hammer(ctx, b), b.ours.remove(ctx, witness))
	}
	if err != nil {
		r.DidNotRun = err.Error()
	}
	return []row{r}, nil
}

// hammer runs the program and fills the row in.
func (r *row) hammer(ctx context.Context, b *bench) error {
	before, err := b.ours.shim.family()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(b.tools, "bench", "hammer"), b.ours.home, b.rootfs, fmt.Sprint(hammerBoxes))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	start := time.Now()
	said, err := cmd.Output() // the ids of the boxes that went well
	took := time.Since(start)
	if err != nil {
		return fmt.Errorf("hammer: %w", err)
	}
	ids := strings.Fields(string(said))
	left, err := b.ours.leftovers(ids)
	if err != nil {
		return err
	}
	after, err := b.ours.shim.family()
	if err != nil {
		return err
	}
	r.P50, r.P99 = took.Seconds(), took.Seconds()
	failed, more := hammerBoxes-len(ids), len(after)-len(before)
	r.Bars = []verdict{
		{"no failure", float64(failed), failed == 0},
		{"no folder, cgroup or mount left", float64(len(left)), len(left) == 0},
		{"no process left", float64(more), more == 0},
	}
	for _, what := range left {
		fmt.Fprintln(os.Stderr, "left behind:", what)
	}
	return nil
}

// leftovers looks for what bears one of the ids: folders of the home, cgroups,
// and mounts of this process and of the shim.
func (o *ours) leftovers(ids []string) ([]string, error) {
	gone := map[string]bool{}
	for _, id := range ids {
		gone[id] = true
	}
	var left []string
	for _, root := range []string{o.home, "/sys/fs/cgroup"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && gone[d.Name()] {
				left = append(left, path)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil // went while we looked
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for _, pid := range []int{os.Getpid(), o.shim.pid} {
		mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(mounts)) {
			if strings.Contains(line, o.home) && containsAny(line, ids) {
				left = append(left, line)
			}
		}
	}
	return left, nil
}

func containsAny(s string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}
