package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandbox/api"
)

func TestStats(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one := h.create("-n", "one", "-m", "64")
	h.create("-n", "two")
	h.sandbox("stop", "two")
	for args, want := range map[string][]string{
		"":                {one},
		"two":             {"two"},
		"two one":         {"two", "one"},
		"--no-stream one": {one},
	} {
		out, errs, code := h.sandbox(append([]string{"stats"}, strings.Fields(args)...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if code != 0 || len(lines) != 1+len(want) || !strings.HasPrefix(lines[0], "ID") {
			t.Fatalf("stats %s: exit %d, %q, %q", args, code, out, errs)
		}
		for i, box := range want {
			if !strings.Contains(lines[i+1], box) {
				t.Errorf("stats %s: line %d is %q, want one of %s", args, i+1, lines[i+1], box)
			}
		}
	}
	if out, _, _ := h.sandbox("stats", "one"); !strings.Contains(out, "/ 64.0 MiB") {
		t.Errorf("no limit in %q", out)
	}
	if _, _, code := h.sandbox("stats", "-f", "--no-stream"); code != 2 {
		t.Errorf("once and again and again: exit %d", code)
	}
	if _, errs, code := h.sandbox("stats", "nope"); code != 5 || !strings.Contains(errs, "nope") {
		t.Errorf("a box that is not there: exit %d, %q", code, errs)
	}
}

// Ctrl-C ends the measuring, which prints a document a line.
func TestStatsUntilInterrupted(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	id := h.create()
	ctx, end := context.WithCancelCause(t.Context())
	out, into := io.Pipe()
	go func() {
		var line struct {
			Boxes []struct {
				ID     string `json:"id"`
				Memory *int64 `json:"memory_bytes"`
			} `json:"boxes"`
		}
		if err := json.NewDecoder(out).Decode(&line); err != nil || len(line.Boxes) != 1 || line.Boxes[0].ID != id || line.Boxes[0].Memory == nil {
			t.Errorf("got %+v, %v", line, err)
		}
		end(Signal(syscall.SIGINT))
		_, _ = io.Copy(io.Discard, out)
	}()
	if code := h.run(ctx, Stdio{strings.NewReader(""), into, io.Discard}, "stats", "-f", "-o", "json"); code != 130 {
		t.Errorf("exit %d", code)
	}
	_ = into.Close()
}

// From the second measurement on, the CPU's share is that of the time between.
func TestStatsOfTheTimeBetween(t *testing.T) {
	t.Parallel()
	s := stats{before: map[string]cpuTime{}}
	start := time.Unix(1000, 0)
	for i, step := range []struct {
		start, at   time.Time
		mean, shown float64
	}{
		{start, start.Add(10 * time.Second), 50, 50},                   // 5 s of CPU time
		{start, start.Add(20 * time.Second), 75, 100},                  // 15 s
		{start, start.Add(30 * time.Second), 50, 0},                    // 15 s
		{start.Add(time.Minute), start.Add(2 * time.Minute), 200, 200}, // it was started again
	} {
		m := api.BoxMetrics{CPUPercent: &step.mean}
		s.sinceLast(api.Box{ID: "box", StartedAt: &step.start}, &m, step.at)
		if got := *m.CPUPercent; got < step.shown-0.01 || got > step.shown+0.01 {
			t.Errorf("step %d: %v %%, want %v", i, got, step.shown)
		}
	}
}

// A table has docker's columns, and "-" for what is not known.
func TestStatsRow(t *testing.T) {
	t.Parallel()
	n := func(n int64) *int64 { return &n }
	percent, name := 12.34, "web"
	full := stat{"box_a", &name, 64, api.BoxMetrics{
		CPUPercent: &percent, MemoryBytes: n(16 << 20), Processes: n(3),
		NetReceived: n(1 << 10), NetSent: n(2 << 10), DiskRead: n(3 << 20), DiskWritten: n(4 << 20),
	}}
	for want, s := range map[string]stat{
		"box_a|web|12.3|16.0 MiB / 64.0 MiB|25.0|1.0 KiB / 2.0 KiB|3.0 MiB / 4.0 MiB|3": full,
		"box_b|-|-|-|-|-|-|-": {ID: "box_b", MemoryMiB: 64},
	} {
		if got := strings.Join(texts(s.row()), "|"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func texts(cells []any) []string {
	all := make([]string, len(cells))
	for i, cell := range cells {
		all[i] = fmt.Sprint(cell)
	}
	return all
}
