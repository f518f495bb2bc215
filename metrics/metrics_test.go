package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/leak"
	"sandbox/test/members"
)

func TestMain(m *testing.M) { leak.Main(m) }

// second is a moment of the tests, which begin at 1000 s.
func second(n int64) int64 { return (1000 + n) * 1000 }

// used returns a sample of a box that was started at second 0.
func used(at int64, cpu time.Duration, memory int64) Sample {
	return Sample{Box: "box_a", At: second(at), Started: second(0), CPU: int64(cpu), Memory: memory, Disk: Unknown, DiskRead: Unknown, DiskWrite: Unknown}
}

func TestFold(t *testing.T) {
	t.Parallel()
	one, two, three := used(5, 1e9, 10), used(10, 2e9, 50), used(25, 3e9, 20)
	one.Processes, one.NetSent, two.NetSent = 4, 5, 6
	peak := two
	peak.Processes = 4
	for step, want := range map[int64][]Sample{
		1000: {one, two, three}, 20_000: {peak, three}, 5000: {one, two, three},
	} {
		if got := fold([]Sample{one, two, three}, step); !reflect.DeepEqual(got, want) {
			t.Errorf("by %d ms: %+v, want %+v", step, got, want)
		}
	}
	if got := fold(nil, 1000); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}

// The CPU's share is the mean since the sample before, in whatever step that was, and
// since the start of the box, or over a second, where there is none of its life.
func TestPoints(t *testing.T) {
	t.Parallel()
	again := used(40, 5e9, 1) // it was started again
	again.Started, again.Disk = second(30), 7
	back := again // its clock went back
	back.At, back.CPU = second(50), 1e9
	samples := []Sample{used(10, 5e9, 1), used(20, 15e9, 2), again, back}
	got := points(samples, second(15))
	if len(got) != 3 {
		t.Fatalf("%d points: %+v", len(got), got)
	}
	members.Equal(t, "the points", members.Of{
		"share": {got[0].CPUPercent, 100.0}, "memory": {got[0].MemoryBytes, int64(2)}, "unknown": {got[0].DiskBytes == nil, true},
		"of another life": {got[1].CPUPercent, 50.0}, "known": {*got[1].DiskBytes, int64(7)},
		"backwards": {got[2].CPUPercent, 0.0}, "time": {got[0].At, time.Unix(1020, 0).UTC()},
	})
	if got := points(samples, second(0)); got[0].CPUPercent != 50 {
		t.Errorf("without one before: %v %%", got[0].CPUPercent)
	}
	for age, want := range map[int64]float64{-5: 0, 0: 3, 7: 3, 999: 3, 2000: 1.5} { // ms
		young := used(0, 30*time.Millisecond, 1)
		young.At += age
		if got := points([]Sample{young}, 0); got[0].CPUPercent != want {
			t.Errorf("%d ms old: %v %%, want %v", age, got[0].CPUPercent, want)
		}
	}
	if got := points(nil, 0); got == nil {
		t.Error("no points are null")
	}
}

func TestQuery(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_123)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, c := range map[string]struct {
		q       Query
		step    int64 // seconds
		seconds int64 // that are asked for
		wrong   string
	}{
		"nothing":                 {q: Query{}, step: 10, seconds: 3600},
		"a step":                  {q: Query{Step: time.Minute}, step: 60, seconds: 3600},
		"an end":                  {q: Query{To: ago(time.Hour)}, step: 10, seconds: 3600},
		"a later end":             {q: Query{To: ago(-time.Hour)}, step: 10, seconds: 3600},
		"a day":                   {q: Query{From: ago(24 * time.Hour)}, step: 60, seconds: 86400},
		"a day by the minute":     {q: Query{From: ago(24 * time.Hour), Step: time.Minute}, step: 60, seconds: 86400},
		"a week":                  {q: Query{From: ago(7 * 24 * time.Hour)}, step: 420, seconds: 7 * 86400},
		"a short time":            {q: Query{From: ago(time.Second), Step: time.Hour}, step: 3600, seconds: 1},
		"ever":                    {q: Query{From: time.Unix(-1<<40, 0)}, step: 1180556, seconds: 1_700_000_000},
		"too short a step":        {q: Query{From: ago(25 * time.Hour), Step: time.Minute}, wrong: "step must be at least 1m3s"},
		"from after to":           {q: Query{From: ago(time.Minute), To: ago(time.Hour)}, wrong: "from must be before to"},
		"from is to":              {q: Query{From: ago(time.Hour), To: ago(time.Hour)}, wrong: "from must be before to"},
		"from that is to come":    {q: Query{From: ago(-time.Minute)}, wrong: "from must be before to"},
		"a step of half a second": {q: Query{Step: 500 * time.Millisecond}, wrong: "step must be whole seconds"},
		"a step below 0":          {q: Query{Step: -time.Second}, wrong: "step must be whole seconds"},
	} {
		s, err := c.q.span("box_a", now, 10*time.Second)
		if c.wrong != "" {
			if !fault.Is(err, fault.InvalidArgument) || !strings.HasPrefix(err.Error(), c.wrong) || fault.Of(err).Fields == nil {
				t.Errorf("%s: %v, want %q", name, err, c.wrong)
			}
			continue
		}
		length := (s.to - s.from) / 1000
		if err != nil || s.step != c.step*1000 || s.from%s.step != 0 || length < c.seconds || length > c.seconds+c.step {
			t.Errorf("%s: %+v, which is %d s, %v", name, s, length, err)
		}
		if steps := (s.to+s.step-1)/s.step - s.from/s.step; steps > MaxSteps+1 {
			t.Errorf("%s: %d steps", name, steps)
		}
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	m := &memory{}
	at := func(n int64, boxes ...string) {
		var samples []Sample
		for _, box := range boxes {
			samples = append(samples, Sample{Box: box, At: second(n), Memory: n})
		}
		m.add(t.Context(), samples)
	}
	of := func(box string, from, to int64) string {
		samples, err := m.read(t.Context(), span{box, second(from), second(to), 1000})
		if err != nil {
			t.Fatal(err)
		}
		var all []int64
		for _, s := range samples {
			all = append(all, s.Memory)
		}
		return fmt.Sprint(all)
	}
	at(0, "b", "a", "c")
	at(10)
	at(20, "c", "a")
	at(3600, "a")
	for got, want := range map[string]string{
		of("a", 0, 4000): "[0 20 3600]", of("b", 0, 4000) + "b": "[0]b", of("a", 20, 3600) + "part": "[20]part", of("d", 0, 4000): "[]",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	at(3601, "a")
	if got := of("a", 0, 4000); got != "[20 3600 3601]" {
		t.Errorf("an hour later: %s", got)
	}
}

// However many boxes there are, the memory that samples take has a bound.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m := &memory{}
	const boxes = 5000
	samples := make([]Sample, boxes)
	for pass := range int64(300) {
		for i := range samples {
			samples[i] = Sample{Box: fmt.Sprintf("box_%05d", i), At: second(pass)}
		}
		m.add(t.Context(), samples)
		if m.count > maxSamples || m.count != len(m.passes)*boxes {
			t.Fatalf("after %d passes: %d samples in %d", pass, m.count, len(m.passes))
		}
	}
	if got := len(m.passes); got != maxSamples/boxes {
		t.Errorf("%d passes are kept", got)
	}
	if got, _ := m.read(t.Context(), span{"box_04999", 0, second(1000), 1000}); len(got) != len(m.passes) || got[0].At != second(300-int64(len(got))) {
		t.Errorf("%d samples from %d on", len(got), got[0].At)
	}
}

// A History measures at its interval, also after a failure, until it is closed.
func TestHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var passes atomic.Int64
		start := time.Now()
		h := Start(Config{Interval: 10 * time.Second, Log: slog.New(slog.NewTextHandler(&log, nil)), Measure: func(context.Context) ([]core.Measured, error) {
			n := passes.Add(1)
			if n == 3 || n == 4 {
				return nil, errors.New("no records")
			}
			rec := core.Record{ID: "box_a", Status: api.Running, StartedAt: &start, Options: options.Box{}}
			disk := int64(9)
			return []core.Measured{{Record: rec, At: time.Now(), Usage: core.Usage{
				CPU: time.Since(start) / 2, MemoryBytes: 100 * n, Processes: n, DiskBytes: &disk, Network: &core.Traffic{Sent: n, Received: 2 * n}, Disk: &core.DiskTraffic{Read: 3 * n, Written: 4 * n},
			}}}, nil
		}})
		time.Sleep(55 * time.Second)
		s, err := h.Series(t.Context(), "box_a", Query{})
		if err != nil || len(s.Points) != 4 || s.BoxID != "box_a" || s.StepSeconds != 10 {
			t.Fatalf("%+v, %v", s, err)
		}
		last := s.Points[3]
		members.Equal(t, "the last point", members.Of{
			"share": {last.CPUPercent, 50.0}, "memory": {last.MemoryBytes, int64(600)}, "processes": {last.Processes, int64(6)},
			"disk": {*last.DiskBytes, int64(9)}, "sent": {*last.NetSent, int64(6)}, "received": {*last.NetReceived, int64(12)},
			"read": {*last.DiskRead, int64(18)}, "written": {*last.DiskWritten, int64(24)}, "at": {last.At, start.Add(50 * time.Second).UTC()},
		})
		h.Close(t.Context())
		if n := strings.Count(log.String(), "gap"); n != 1 {
			t.Errorf("two failures in a row are told %d times: %s", n, log.String())
		}
		before := passes.Load()
		time.Sleep(time.Minute)
		if passes.Load() != before {
			t.Error("it measures after its end")
		}
	})
}

// Without a History there is nothing, and the failure says so.
func TestNoHistory(t *testing.T) {
	t.Parallel()
	var h *History
	h.Close(t.Context())
	if _, err := h.Series(t.Context(), "box_a", Query{}); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "--metrics-interval") {
		t.Error(err)
	}
}
