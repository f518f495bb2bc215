package main

import (
	"context"
	"errors"
	"time"
)

// measureNetwork makes boxes with all that an image, a volume and a network
// bring, one at a time.
func measureNetwork(ctx context.Context, b *bench) ([]row, error) {
	l, err := b.theLab(ctx)
	if err != nil {
		return nil, err
	}
	all := b.interleave(ctx, l.ours.contestant(l.oursToOutput), l.podman.contestant("podman", l.podmanToOutput))
	return rows(millis, all, bar{contestant: "ours", peer: "podman", percentile: 50, limit: 0.3}), nil
}

// oursToOutput makes a box and runs a command in it, to the first byte. The
// box's removal is not in the time.
func (l *lab) oursToOutput(ctx context.Context) (time.Duration, error) {
	port := l.nextPort()
	start := time.Now()
	box, err := l.create(ctx, "127.0.0.1", port)
	if err != nil {
		return 0, err
	}
	made := time.Since(start)
	t, err := l.ours.exec(ctx, box, hello...)
	return made + t.first, errors.Join(err, l.ours.remove(ctx, box))
}

func (l *lab) podmanToOutput(ctx context.Context) (time.Duration, error) {
	name, args := l.podman.run(l.publish("127.0.0.1", l.nextPort()), hello...)
	t, err := l.podman.command(args...).run(ctx)
	return t.first, errors.Join(err, l.podman.remove(ctx, name))
}
