package main

import (
	"context"
	"errors"

	"sandbox/core"
)

const idleBoxes = 50

// measureMemory keeps boxes idle and measures all processes of ours.
func measureMemory(ctx context.Context, b *bench) ([]row, error) {
	return b.ours.alone("MiB", idleBoxes, func(r *row) error {
		boxes, err := b.ours.idle(ctx, idleBoxes)
		if err == nil {
			err = weigh(b.ours.shim, r)
		}
		for _, box := range boxes {
			err = errors.Join(err, b.ours.remove(ctx, box))
		}
		return err
	}), nil
}

// idle makes n boxes and uses each once: memory that init needs for its first
// exec counts. What was made is given also on failure.
func (o *ours) idle(ctx context.Context, n int) ([]*core.Box, error) {
	var boxes []*core.Box
	for range n {
		box, err := o.create(ctx)
		if err != nil {
			return boxes, err
		}
		boxes = append(boxes, box)
		if _, err := o.exec(ctx, box, hello...); err != nil {
			return boxes, err
		}
	}
	return boxes, nil
}

// weigh fills in the row: one shim and one init a box is all there may be.
func weigh(shim shim, r *row) error {
	pids, err := shim.family()
	if err != nil {
		return err
	}
	var sum int64
	for _, pid := range pids {
		bytes, err := pss(pid)
		if err != nil {
			return err
		}
		sum += bytes
	}
	r.P50 = float64(sum) / idleBoxes / (1 << 20)
	r.P99 = r.P50
	extra := len(pids) - idleBoxes - 1
	r.Bars = []verdict{
		{"<= 2.5 MiB a box", r.P50, r.P50 <= 2.5},
		{"no process but a shim and an init a box", float64(extra), extra == 0},
	}
	return nil
}
