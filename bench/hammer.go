package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const hammerBoxes = 200

// measureHammer runs the C program c/hammer.c on the home, and looks for what
// it left. A box of ours stays alive beside it, and with it the shim.
func measureHammer(ctx context.Context, b *bench) ([]row, error) {
	return b.ours.alone("s", hammerBoxes, func(r *row) error {
		witness, err := b.ours.create(ctx)
		if err != nil {
			return err
		}
		return errors.Join(hammer(ctx, b, r), b.ours.remove(ctx, witness))
	}), nil
}

// hammer runs the program and fills in the row.
func hammer(ctx context.Context, b *bench, r *row) error {
	before, err := b.ours.shim.family()
	if err != nil {
		return err
	}
	start := time.Now()
	ids, err := runHammer(ctx, b)
	if err != nil {
		return err
	}
	r.P50 = time.Since(start).Seconds()
	r.P99 = r.P50
	left, err := b.ours.leftovers(ids)
	if err != nil {
		return err
	}
	after, err := b.ours.shim.family()
	if err != nil {
		return err
	}
	for _, what := range left {
		fmt.Fprintln(os.Stderr, "left behind:", what)
	}
	failed, more := hammerBoxes-len(ids), len(after)-len(before)
	r.Bars = []verdict{
		{"no failure", float64(failed), failed == 0},
		{"no directory, cgroup or mount left", float64(len(left)), len(left) == 0},
		{"no process left", float64(more), more == 0},
	}
	return nil
}

// runHammer returns the ids of the boxes that went well.
func runHammer(ctx context.Context, b *bench) ([]string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(b.tools, "bench", "hammer"), b.ours.home, b.rootfs, strconv.Itoa(hammerBoxes))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it removes its boxes and ends
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	said, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("hammer: %w", err)
	}
	return strings.Fields(string(said)), nil
}

// leftovers looks for what bears one of the ids: directories of the home, cgroups,
// and mounts of this process and of the shim.
func (o *ours) leftovers(ids []string) ([]string, error) {
	var left []string
	for _, root := range []string{o.home, "/sys/fs/cgroup"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // went while we looked
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
	for _, pid := range []int{os.Getpid(), o.shim.pid} {
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
