package measures

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
)

const (
	streamed     = 1 << 30 // bytes
	streamRounds = 30      // at most: a round moves 6 GiB
)

// measureStream moves text out of a box, through a reader in Go and through a
// callback in C, which is given text that was checked to be UTF-8.
func measureStream(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	r := b.StartAll(ctx)
	all := r.Contestants(contestants.Producer, strconv.Itoa(streamed))
	all[0].Name = "ours, reader"
	callback := startCallback(b)
	all = append(all, callback.contestant("ours, callback"), callback.contestant("ours, callback, Cyrillic", "cyrillic"), harness.Contestant{
		Name: "bare pipe", Isolation: "none", Run: func(ctx context.Context) (time.Duration, error) {
			t, err := harness.Command{Args: []string{filepath.Join(b.Rootfs, contestants.Producer), strconv.Itoa(streamed)}}.Run(ctx)
			return t.End, err
		},
	})
	shown := harness.Pace{Rounds: min(b.Rounds, streamRounds)}.Interleave(ctx, all...)
	rate := harness.PerSecond("MB/s", streamed/1e6)
	return harness.Rows(rate, shown,
		harness.Bar{Contestant: "ours, reader", Peer: "bare pipe", Percentile: 50, Limit: 0.88, Rate: true},
		harness.Bar{Contestant: "ours, callback", Peer: "bare pipe", Percentile: 50, Limit: 0.88, Rate: true},
		harness.Bar{Contestant: "ours, callback, Cyrillic", Peer: "ours, callback", Percentile: 50, Limit: 0.7, Rate: true},
	), errors.Join(callback.close(), r.Close(ctx))
}

// callback is the C program c/stream.c. It has a box of its own, in which it
// runs the producer once for each line on its stdin.
type callback struct {
	b   *contestants.Field
	p   *harness.Conversation
	why string
}

func startCallback(b *contestants.Field) *callback {
	c := &callback{b: b, why: b.Ours.Why}
	if c.why == "" {
		var err error
		if c.p, err = harness.Converse(harness.Command{Args: []string{filepath.Join(b.Tools, "bench", "stream"), b.Ours.Home, b.Rootfs, contestants.Producer}}); err != nil {
			c.why = err.Error()
		}
	}
	return c
}

// contestant has the producer write all bytes, of the kind of text that the words
// choose.
func (c *callback) contestant(name string, words ...string) harness.Contestant {
	args, err := json.Marshal(append([]string{strconv.Itoa(streamed)}, words...))
	out := c.b.Ours.Contestant(func(context.Context) (time.Duration, error) {
		if err != nil {
			return 0, err
		}
		said, err := c.p.Ask(string(args))
		if err != nil {
			return 0, err
		}
		var ns, bytes int64
		if _, err := fmt.Sscan(said, &ns, &bytes); err != nil || bytes != streamed {
			return 0, fmt.Errorf("stream said %q", said)
		}
		return time.Duration(ns), nil
	})
	out.Name, out.Why = name, c.why
	return out
}

func (c *callback) close() error {
	if c.p == nil {
		return nil
	}
	return c.p.Close()
}
