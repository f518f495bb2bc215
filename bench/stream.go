package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"
)

const (
	streamed     = 1 << 30 // bytes
	streamRounds = 30      // at most: a round moves 5 GiB
)

// measureStream moves text out of a box, through a reader in Go and through a
// callback in C.
func measureStream(ctx context.Context, b *bench) ([]row, error) {
	r := b.startAll(ctx)
	all := r.contestants(producer, strconv.Itoa(streamed))
	all[0].name = "ours, reader"
	callback := startCallback(b)
	all = append(all, callback.contestant(), contestant{
		name: "bare pipe", isolation: "none", run: func(ctx context.Context) (time.Duration, error) {
			t, err := command{args: []string{filepath.Join(b.rootfs, producer), strconv.Itoa(streamed)}}.run(ctx)
			return t.end, err
		},
	})
	shown := pace{rounds: min(b.rounds, streamRounds)}.interleave(ctx, all...)
	rate := unit{"MB/s", func(d time.Duration) float64 { return streamed / d.Seconds() / 1e6 }}
	return rows(rate, shown,
		bar{contestant: "ours, reader", peer: "bare pipe", percentile: 50, limit: 0.6, rate: true},
		bar{contestant: "ours, callback", peer: "bare pipe", percentile: 50, limit: 0.6, rate: true},
	), errors.Join(callback.close(), r.close(ctx))
}

// callback is the C program c/stream.c: it has a box of its own and runs the
// producer in it once a line on its stdin.
type callback struct {
	b   *bench
	p   *conversation
	why string
}

func startCallback(b *bench) *callback {
	c := &callback{b: b, why: b.ours.why}
	if c.why == "" {
		var err error
		if c.p, err = converse(command{args: []string{filepath.Join(b.tools, "bench", "stream"), b.ours.home, b.rootfs, producer, strconv.Itoa(streamed)}}); err != nil {
			c.why = err.Error()
		}
	}
	return c
}

func (c *callback) contestant() contestant {
	out := c.b.ours.contestant(func(context.Context) (time.Duration, error) {
		said, err := c.p.ask("go")
		if err != nil {
			return 0, err
		}
		var ns, bytes int64
		if _, err := fmt.Sscan(said, &ns, &bytes); err != nil || bytes != streamed {
			return 0, fmt.Errorf("stream said %q", said)
		}
		return time.Duration(ns), nil
	})
	out.name, out.why = "ours, callback", c.why
	return out
}

func (c *callback) close() error {
	if c.p == nil {
		return nil
	}
	return c.p.close()
}
