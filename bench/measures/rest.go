package measures

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
)

// measureRestExec runs commands in a running box through the service.
func measureRestExec(ctx context.Context, b *contestants.Field) (all []harness.Row, err error) {
	s, err := b.Service(ctx)
	if err != nil {
		return nil, err
	}
	crun := b.Peers.Crun.StartOne(ctx)
	err = s.WithBox(ctx, func(box string) error {
		shown := b.Interleave(ctx,
			s.As("POST and events", func(ctx context.Context) (time.Duration, error) { return s.Exec(ctx, box) }),
			crun.Contestant(contestants.Hello))
		all = harness.Rows(harness.Millis, shown, harness.Bar{Contestant: "ours, POST and events", Peer: "crun", Percentile: 50, Limit: 0.5})
		return nil
	})
	return all, errors.Join(err, crun.Close())
}

// measureRestRun runs a command in a box of its own, through the service and
// through the library, on one home.
func measureRestRun(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	s, err := b.Service(ctx)
	if err != nil {
		return nil, err
	}
	all := b.Interleave(ctx,
		s.As("POST /v1/run", s.Run),
		s.As("in process", func(ctx context.Context) (time.Duration, error) {
			start := time.Now()
			box, err := s.Ours.CreateWith(ctx, s.Options())
			if err != nil {
				return 0, err
			}
			_, err = s.Ours.Exec(ctx, box, contestants.Hello...)
			err = errors.Join(err, s.Ours.Remove(ctx, box))
			return time.Since(start), err
		}))
	return harness.Rows(harness.Millis, all, harness.Bar{Contestant: "ours, POST /v1/run", Peer: "ours, in process", Percentile: 50, Limit: 1.4}), nil
}

const (
	listedBoxes  = 50
	readRequests = 2000 // a round
	readRounds   = 20   // at most
)

// measureRestReads reads the listing of many boxes, and one box, over several
// connections.
func measureRestReads(ctx context.Context, b *contestants.Field) (all []harness.Row, err error) {
	s, err := b.Service(ctx)
	if err != nil {
		return nil, err
	}
	boxes, err := s.Ours.Idle(ctx, listedBoxes)
	if err == nil {
		list, err1 := reads(ctx, s, b, "list", "/v1/boxes", 0.6)
		one, err2 := reads(ctx, s, b, "one", "/v1/boxes/"+boxes[0].ID(), 0.6)
		all, err = append(list, one...), errors.Join(err1, err2)
	}
	for _, box := range boxes {
		err = errors.Join(err, s.Ours.Remove(ctx, box))
	}
	return all, err
}

// reads compares the service's reply to a path with that of a bare handler that
// sends the same bytes.
func reads(ctx context.Context, s *contestants.Service, b *contestants.Field, name, path string, limit float64) ([]harness.Row, error) {
	doc, err := s.Get(ctx, s.URL+path)
	if err != nil {
		return nil, err
	}
	if err := s.Bare.Show(doc); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%s, %d bytes", name, len(doc))
	load := func(url string) func(context.Context) (time.Duration, error) {
		return func(ctx context.Context) (time.Duration, error) { return s.Load(ctx, url, readRequests, len(doc)) }
	}
	all := harness.Pace{Rounds: min(b.Rounds, readRounds)}.Interleave(ctx, s.As(what, load(s.URL+path)),
		harness.Contestant{Name: "bare net/http, " + what, Isolation: "none", Run: load(s.Bare.URL)})
	rate := harness.PerSecond("req/s", readRequests)
	return harness.Rows(rate, all, harness.Bar{Contestant: "ours, " + what, Peer: "bare net/http, " + what, Percentile: 50, Limit: limit, Rate: true}), nil
}
