package measures

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
)

// callsBudget is how many system calls a create may take: the 2,151 that it took when
// somebody last looked, and a fiftieth more.
const callsBudget = 2200

// measureCalls counts the system calls of creates from nothing. It fails when they
// are more than the budget: their number does not change with the machine's speed.
func measureCalls(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	var failed error
	rows := b.Ours.Alone("calls", b.Rounds, func(r *harness.Row) error {
		all, err := countCreates(ctx, b.Ours, b.Rounds)
		if err != nil {
			return err
		}
		slices.Sort(all)
		r.P50, r.P99 = float64(all[len(all)/2]), float64(all[len(all)-1])
		within := r.P50 <= callsBudget
		if !within {
			failed = fmt.Errorf("a create takes %g system calls, more than the %d of its budget: find out why, or raise the budget", r.P50, callsBudget)
		}
		r.Bars = []harness.Verdict{{Bar: fmt.Sprint("p50 <= ", callsBudget), Value: r.P50, Met: within}}
		return nil
	})
	return rows, failed
}

// countCreates returns how many calls each of n creates took.
func countCreates(ctx context.Context, o *contestants.Ours, n int) (all []int, err error) {
	for round := -harness.Warmup; round < n && ctx.Err() == nil; round++ {
		calls, err := o.CallsOfCreate(ctx)
		if err != nil {
			return nil, err
		}
		if round >= 0 {
			all = append(all, calls)
		}
	}
	if len(all) == 0 {
		return nil, errors.Join(ctx.Err(), errors.New("no rounds"))
	}
	return all, nil
}
