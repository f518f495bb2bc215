package harness

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i) // 100 down to 1
	}
	for _, tc := range []struct {
		name    string
		samples []time.Duration
		p       int
		want    time.Duration
	}{
		{"none", nil, 50, 0},
		{"one", []time.Duration{7}, 99, 7},
		{"median of three", []time.Duration{9, 1, 5}, 50, 5},
		{"p50 of 100", hundred, 50, 50},
		{"p99 of 100", hundred, 99, 99},
		{"p99 of few is the worst", []time.Duration{1, 2, 8}, 99, 8},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := percentile(tc.samples, tc.p); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	one := func(name string, took time.Duration) Series {
		return Series{Contestant: Contestant{Name: name}, Samples: []time.Duration{took}}
	}
	all := []Series{one("ours", 8), one("runc", 10), {Contestant: Contestant{Name: "crun"}}, one("bwrap", 4)}
	all[3].Why = "failed in its second round"
	for _, tc := range []struct {
		name  string
		bar   Bar
		want  Verdict
		valid bool
	}{
		{"time met", Bar{Contestant: "ours", Peer: "runc", Percentile: 50, Limit: 0.9}, Verdict{"p50 <= 0.9 x runc", 0.8, true}, true},
		{"time missed", Bar{Contestant: "ours", Peer: "runc", Percentile: 99, Limit: 0.7}, Verdict{"p99 <= 0.7 x runc", 0.8, false}, true},
		{"rate met", Bar{Contestant: "runc", Peer: "ours", Percentile: 50, Limit: 0.6, Rate: true}, Verdict{"p50 >= 0.6 x ours", 0.8, true}, true},
		{"rate missed", Bar{Contestant: "runc", Peer: "ours", Percentile: 50, Limit: 0.9, Rate: true}, Verdict{"p50 >= 0.9 x ours", 0.8, false}, true},
		{"peer did not run", Bar{Contestant: "ours", Peer: "crun", Percentile: 50, Limit: 1}, Verdict{}, false},
		{"peer failed later", Bar{Contestant: "ours", Peer: "bwrap", Percentile: 50, Limit: 1}, Verdict{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got, valid := tc.bar.judge(all); got != tc.want || valid != tc.valid {
				t.Errorf("got %+v, %v; want %+v, %v", got, valid, tc.want, tc.valid)
			}
		})
	}
}

func TestInterleave(t *testing.T) {
	t.Parallel()
	var good, bad int
	all := Pace{Rounds: 4}.Interleave(t.Context(),
		Contestant{Name: "good", Run: func(context.Context) (time.Duration, error) {
			good++
			return time.Duration(good), nil
		}},
		Contestant{Name: "bad", Run: func(context.Context) (time.Duration, error) {
			bad++
			return 0, errors.New("broken")
		}},
		Contestant{Name: "missing", Why: "is not installed"},
	)
	if first := all[0].Samples[0]; len(all[0].Samples) != 4 || first != Warmup+1 {
		t.Errorf("good: %v: want 4 samples without the warm-up rounds", all[0].Samples)
	}
	if bad != 1 || all[1].Why != "broken" {
		t.Errorf("bad ran %d times, why %q: want it out after the first", bad, all[1].Why)
	}
	if all[2].Why != "is not installed" || len(all[2].Samples) != 0 {
		t.Errorf("missing: %+v", all[2])
	}
}
