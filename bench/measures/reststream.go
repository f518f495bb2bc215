package measures

import (
	"context"
	"fmt"
	"time"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
	"sandbox/core/options"
)

const (
	restStreamed     = 512 << 20 // bytes
	restStreamRounds = 15        // at most: a round moves 2.5 GiB
	streamedFile     = "/root/streamed"
	// restStreamMemory holds the file that is read and the one that is written, in MiB.
	// With the default memory of a box the disk would be measured.
	restStreamMemory = 2 << 10
)

// measureRestStream moves bytes out of a box, and a file into one, over TCP.
func measureRestStream(ctx context.Context, b *contestants.Field) (all []harness.Row, err error) {
	s, err := b.Service(ctx)
	if err != nil {
		return nil, err
	}
	err = s.WithBox(ctx, func(box string) error {
		if err := s.Shell(ctx, box, fmt.Sprintf("%s %d > %s", contestants.Producer, restStreamed, streamedFile)); err != nil {
			return err
		}
		theirs := func(what string, run func(context.Context) (time.Duration, error)) harness.Contestant {
			return harness.Contestant{Name: "bare net/http, " + what, Isolation: "none", Run: run}
		}
		shown := harness.Pace{Rounds: min(b.Rounds, restStreamRounds)}.Interleave(ctx,
			s.As("exec attach", func(ctx context.Context) (time.Duration, error) { return s.Attach(ctx, box, restStreamed) }),
			s.As("download", func(ctx context.Context) (time.Duration, error) {
				return s.Download(ctx, box, streamedFile, restStreamed)
			}),
			theirs("out", func(ctx context.Context) (time.Duration, error) { return s.BareDownload(ctx, restStreamed) }),
			s.As("upload", func(ctx context.Context) (time.Duration, error) { return s.Upload(ctx, box, restStreamed) }),
			theirs("in, to nowhere", func(ctx context.Context) (time.Duration, error) { return s.BareUpload(ctx, restStreamed) }))
		rate := harness.PerSecond("MB/s", restStreamed/1e6)
		all = harness.Rows(rate, shown,
			harness.Bar{Contestant: "ours, exec attach", Peer: "bare net/http, out", Percentile: 50, Limit: 0.7, Rate: true},
			harness.Bar{Contestant: "ours, download", Peer: "bare net/http, out", Percentile: 50, Limit: 0.7, Rate: true})
		return nil
	}, func(o *options.Box) { o.MemoryMiB = restStreamMemory })
	return all, err
}
