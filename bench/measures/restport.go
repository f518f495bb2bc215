package measures

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
	"sandbox/core/options"
)

const (
	portSent   = 1 << 30 // bytes
	portRounds = 15      // at most: a round moves 2 GiB
	portMemory = 2048    // MiB: the file stays in memory
)

// measureRestPort reads a file from a program in a box over HTTP: through the service,
// and through a published port of the same box.
func measureRestPort(ctx context.Context, b *contestants.Field) (all []harness.Row, err error) {
	s, err := b.Service(ctx)
	if err != nil {
		return nil, err
	}
	o := s.Options()
	o.Network, o.MemoryMiB = options.NetworkIsolated, portMemory
	o.Ports = []options.Port{{GuestPort: contestants.GuestPort, Protocol: options.ProtocolTCP}}
	box, err := s.Ours.CreateWith(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Ours.Remove(ctx, box)) }()
	rec, err := box.Record(ctx)
	if err != nil {
		return nil, err
	}
	serve := fmt.Sprintf("mkdir /tmp/www; %s %d >/tmp/www/f; /bin/busybox httpd -p %d -h /tmp/www", contestants.Producer, portSent, contestants.GuestPort)
	if err := s.Shell(ctx, box.ID(), serve); err != nil {
		return nil, err
	}
	from := func(what, url string) harness.Contestant {
		return s.As(what, func(ctx context.Context) (time.Duration, error) { return s.Fetch(ctx, url, portSent) })
	}
	shown := harness.Pace{Rounds: min(b.Rounds, portRounds)}.Interleave(ctx,
		from("through the service", fmt.Sprintf("%s/v1/boxes/%s/ports/%d/f", s.URL, box.ID(), contestants.GuestPort)),
		from("published port", fmt.Sprintf("http://127.0.0.1:%d/f", rec.Options.Ports[0].HostPort)))
	rate := harness.PerSecond("MB/s", portSent/1e6)
	return harness.Rows(rate, shown,
		harness.Bar{Contestant: "ours, through the service", Peer: "ours, published port", Percentile: 50, Limit: 0.5, Rate: true}), nil
}
