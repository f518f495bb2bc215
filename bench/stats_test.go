package main

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
	one := func(name string, took time.Duration) series {
		return series{contestant: contestant{name: name}, samples: []time.Duration{took}}
	}
	all := []series{one("ours", 8), one("runc", 10), {contestant: contestant{name: "crun"}}}
	for _, tc := range []struct {
		name  string
		bar   bar
		want  verdict
		valid bool
	}{
		{"time met", bar{contestant: "ours", peer: "runc", percentile: 50, limit: 0.9}, verdict{"p50 <= 0.9 x runc", 0.8, true}, true},
		{"time missed", bar{contestant: "ours", peer: "runc", percentile: 99, limit: 0.7}, verdict{"p99 <= 0.7 x runc", 0.8, false}, true},
		{"rate met", bar{contestant: "runc", peer: "ours", percentile: 50, limit: 0.6, rate: true}, verdict{"p50 >= 0.6 x ours", 0.8, true}, true},
		{"rate missed", bar{contestant: "runc", peer: "ours", percentile: 50, limit: 0.9, rate: true}, verdict{"p50 >= 0.9 x ours", 0.8, false}, true},
		{"peer did not run", bar{contestant: "ours", peer: "crun", percentile: 50, limit: 1}, verdict{}, false},
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
	all := pace{rounds: 4}.interleave(t.Context(),
		contestant{name: "good", run: func(context.Context) (time.Duration, error) {
			good++
			return time.Duration(good), nil
		}},
		contestant{name: "bad", run: func(context.Context) (time.Duration, error) {
			bad++
			return 0, errors.New("broken")
		}},
		contestant{name: "missing", why: "is not installed"},
	)
	if first := all[0].samples[0]; len(all[0].samples) != 4 || first != warmup+1 {
		t.Errorf("good: %v: want 4 samples without the warm-up rounds", all[0].samples)
	}
	if bad != 1 || all[1].why != "broken" {
		t.Errorf("bad ran %d times, why %q: want it out after the first", bad, all[1].why)
	}
	if all[2].why != "is not installed" || len(all[2].samples) != 0 {
		t.Errorf("missing: %+v", all[2])
	}
}
