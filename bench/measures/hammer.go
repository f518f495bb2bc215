package measures

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
)

const hammerBoxes = 200

// measureHammer runs the C program c/hammer.c on the home, and looks for what
// it leaves behind. A box of ours keeps running meanwhile, which keeps the shim
// alive.
func measureHammer(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	return b.Ours.Alone("s", hammerBoxes, func(r *harness.Row) error {
		witness, err := b.Ours.Create(ctx)
		if err != nil {
			return err
		}
		return errors.Join(hammer(ctx, b, r), b.Ours.Remove(ctx, witness))
	}), nil
}

// hammer runs the program and fills in the row.
func hammer(ctx context.Context, b *contestants.Field, r *harness.Row) error {
	before, err := b.Ours.Shim.Family()
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
	left, err := b.Ours.Leftovers(ids)
	if err != nil {
		return err
	}
	after, err := b.Ours.Shim.Family()
	if err != nil {
		return err
	}
	for _, what := range left {
		fmt.Fprintln(os.Stderr, "left behind:", what)
	}
	failed, more := hammerBoxes-len(ids), len(after)-len(before)
	r.Bars = []harness.Verdict{
		harness.None("no failure", failed),
		harness.None("no directory, cgroup or mount left", len(left)),
		harness.None("no process left", more),
	}
	return nil
}

// runHammer returns the ids of the boxes that worked.
func runHammer(ctx context.Context, b *contestants.Field) ([]string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(b.Tools, "bench", "hammer"), b.Ours.Home, b.Rootfs, strconv.Itoa(hammerBoxes))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // on this signal it removes its boxes and ends
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	said, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("hammer: %w", err)
	}
	return strings.Fields(string(said)), nil
}
