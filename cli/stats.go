package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/client"
	"sandbox/core/fault"
)

// statsEvery is how often boxes are measured.
const statsEvery = 2 * time.Second

func (a *app) statsCmd() *cobra.Command {
	var follow, once bool
	cmd := &cobra.Command{
		Use:   "stats [-f] [BOX...]",
		Short: "Show what boxes use of CPU, memory, network and disk",
		Long: `Show what boxes use of CPU, memory, network and disk: the boxes that are named, or
all that run; with -f again every 2 seconds until Ctrl-C. CPU% is 100 for one CPU,
in the first table since the box was started and then since the table before. NET
I/O is what the box has received and sent since its start, DISK I/O what it has read
from devices and written to them ("-" where the host has cgroup v1, which does not
count it), PIDS are the processes and threads of its commands.

With -o json each measurement is a document on a line of its own.`,
		Example: "  sandbox stats\n  sandbox stats -f web\n  sandbox stats -o json web",
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "measure every 2 seconds")
	cmd.Flags().BoolVar(&once, "no-stream", false, "measure once, as without; docker's word")
	_ = cmd.Flags().MarkHidden("no-stream") // it is there
	cmd.MarkFlagsMutuallyExclusive("follow", "no-stream")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		return a.with(ctx, false, func(on backend.Boxes) error {
			s := stats{on: on, refs: args, before: map[string]cpuTime{}}
			if follow {
				return a.followStats(ctx, &s)
			}
			return a.printStats(ctx, &s)
		})
	}
	return a.completeBoxes(cmd, 0, api.Running)
}

// followStats measures again and again until ctx ends.
func (a *app) followStats(ctx context.Context, s *stats) error {
	ticker := time.NewTicker(statsEvery)
	defer ticker.Stop()
	for {
		if asTerminal(a.Out) != nil && !a.asJSON() {
			_, _ = io.WriteString(a.Out, "\x1b[H\x1b[2J") // in place of the table before
		}
		if err := a.printStats(ctx, s); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fault.Wrap(fault.Canceled, ctx.Err(), "measure boxes")
		}
	}
}

// printStats measures once.
func (a *app) printStats(ctx context.Context, s *stats) error {
	all, err := s.measure(ctx)
	if err != nil {
		return err
	}
	if a.asJSON() {
		return json.NewEncoder(a.Out).Encode(map[string]any{"boxes": all})
	}
	head := []any{"ID", "NAME", "CPU%", "MEMORY / LIMIT", "MEMORY%", "NET I/O", "DISK I/O", "PIDS"}
	return writeTable(a.Out, append([][]any{head}, rows(all, stat.row)...)...)
}

// stat is what was measured of one box.
type stat struct {
	ID        string  `json:"id"`
	Name      *string `json:"name"`
	MemoryMiB int     `json:"memory_mib"` // its limit
	api.BoxMetrics
}

func (s stat) row() []any {
	cpu, memory, share, processes := "-", "-", "-", "-"
	if s.CPUPercent != nil {
		cpu = fmt.Sprintf("%.1f", *s.CPUPercent)
	}
	limit := int64(s.MemoryMiB) << 20
	if s.MemoryBytes != nil && limit > 0 {
		memory = size(*s.MemoryBytes) + " / " + size(limit)
		share = fmt.Sprintf("%.1f", 100*float64(*s.MemoryBytes)/float64(limit))
	}
	if s.Processes != nil {
		processes = strconv.FormatInt(*s.Processes, 10)
	}
	return []any{s.ID, cmp.Or(deref(s.Name), "-"), cpu, memory, share, bothWays(s.NetReceived, s.NetSent), bothWays(s.DiskRead, s.DiskWritten), processes}
}

// bothWays returns the bytes that came and those that went.
func bothWays(in, out *int64) string {
	if in == nil || out == nil {
		return "-"
	}
	return size(*in) + " / " + size(*out)
}

// stats measures boxes, and remembers the CPU time that they had used before.
type stats struct {
	on     backend.Boxes
	refs   []string // empty: all that run
	before map[string]cpuTime
}

// cpuTime is what a box had used since its start at a moment.
type cpuTime struct {
	at, start time.Time
	used      float64 // seconds
}

func (s *stats) measure(ctx context.Context) ([]stat, error) {
	found, err := s.boxes(ctx)
	if err != nil {
		return nil, err
	}
	all := []stat{}
	for _, b := range found {
		m, err := s.on.BoxMetrics(ctx, b.ID)
		if len(s.refs) == 0 && fault.Is(err, fault.BoxNotFound) {
			continue // it was removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		s.sinceLast(b, &m, time.Now())
		all = append(all, stat{b.ID, b.Name, b.MemoryMiB, m})
	}
	return all, nil
}

// boxes returns the boxes to measure.
func (s *stats) boxes(ctx context.Context) ([]api.Box, error) {
	if len(s.refs) == 0 {
		return s.on.Boxes(ctx, client.Filter{Status: api.Running})
	}
	var all []api.Box
	for _, ref := range s.refs {
		b, err := s.on.Box(ctx, ref)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// sinceLast replaces the mean since a box's start by that since the last
// measurement, if it had the same start then.
func (s *stats) sinceLast(b api.Box, m *api.BoxMetrics, now time.Time) {
	if m.CPUPercent == nil || b.StartedAt == nil {
		return
	}
	is := cpuTime{now, *b.StartedAt, *m.CPUPercent / 100 * now.Sub(*b.StartedAt).Seconds()}
	was, ok := s.before[b.ID]
	s.before[b.ID] = is
	if ok && was.start.Equal(is.start) && now.After(was.at) {
		percent := max(0, 100*(is.used-was.used)/now.Sub(was.at).Seconds())
		m.CPUPercent = &percent
	}
}
