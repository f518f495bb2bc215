package measures

import (
	"context"
	"errors"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
)

const idleBoxes = 50

// measureMemory keeps boxes idle and measures the memory of all our processes.
func measureMemory(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	return b.Ours.Alone("MiB", idleBoxes, func(r *harness.Row) error {
		boxes, err := b.Ours.Idle(ctx, idleBoxes)
		if err == nil {
			err = weigh(b.Ours.Shim, r, idleBoxes, 2.5)
		}
		for _, box := range boxes {
			err = errors.Join(err, b.Ours.Remove(ctx, box))
		}
		return err
	}), nil
}

// weigh fills in the row for n idle boxes, of which each may have so many MiB. The other
// bar allows no processes but one shim, and one init for each box.
func weigh(shim contestants.Shim, r *harness.Row, n int, most float64) error {
	pids, err := shim.Family()
	if err != nil {
		return err
	}
	var sum int64
	for _, pid := range pids {
		bytes, err := harness.PSS(pid)
		if err != nil {
			return err
		}
		sum += bytes
	}
	r.P50 = float64(sum) / float64(n) / (1 << 20)
	r.P99 = r.P50
	extra := len(pids) - n - 1
	r.Bars = []harness.Verdict{
		harness.Most(most, "MiB a box", r.P50),
		harness.None("no process but a shim and an init a box", extra),
	}
	return nil
}
