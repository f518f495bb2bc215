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
	restStreamRounds = 15        // at most: a round moves 4 GiB
	streamedFile     = "/root/streamed"
	// restStreamMemory holds the file that is read and the one that is written, in MiB.
	// With the default memory of a box the disk would be measured.
	restStreamMemory = 2 << 10
)

// measureRestStream moves bytes out of a box, and a file into one, over TCP; what goes out
// also beside a process that wants one CPU.
func measureRestStream(ctx context.Context, b *contestants.Field) (all []harness.Row, err error) {
	s, err := b.Service(ctx)
	if err != nil {
		return nil, err
	}
	err = s.WithBox(ctx, func(box string) error {
		if err := s.Shell(ctx, box, fmt.Sprintf("%s %d > %s", contestants.Producer, restStreamed, streamedFile)); err != nil {
			return err
		}
		shown := harness.Pace{Rounds: min(b.Rounds, restStreamRounds)}.Interleave(ctx, restStreams(s, box)...)
		all = harness.Rows(harness.PerSecond("MB/s", restStreamed/1e6), shown, append(streamBars("", 0.7), streamBars(", beside one busy", 0.5)...)...)
		return nil
	}, func(o *options.Box) { o.MemoryMiB = restStreamMemory })
	return all, err
}

// restStreams are the streams from a box and into it, and those of net/http.
func restStreams(s *contestants.Service, box string) []harness.Contestant {
	attach := func(ctx context.Context) (time.Duration, error) { return s.Attach(ctx, box, restStreamed) }
	download := func(ctx context.Context) (time.Duration, error) {
		return s.Download(ctx, box, streamedFile, restStreamed)
	}
	upload := func(ctx context.Context) (time.Duration, error) { return s.Upload(ctx, box, restStreamed) }
	out := func(ctx context.Context) (time.Duration, error) { return s.BareDownload(ctx, restStreamed) }
	in := func(ctx context.Context) (time.Duration, error) { return s.BareUpload(ctx, restStreamed) }
	theirs := func(what string, run func(context.Context) (time.Duration, error)) harness.Contestant {
		return harness.Contestant{Name: "bare net/http, " + what, Isolation: "none", Run: run}
	}
	return []harness.Contestant{
		s.As("exec attach", attach), s.As("download", download), theirs("out", out),
		s.As("upload", upload), theirs("in, to nowhere", in),
		s.As("exec attach, beside one busy", harness.BesideBusy(attach)),
		s.As("download, beside one busy", harness.BesideBusy(download)),
		theirs("out, beside one busy", harness.BesideBusy(out)),
	}
}

// streamBars hold what goes out of a box to net/http in the same company.
func streamBars(company string, limit float64) []harness.Bar {
	bars := make([]harness.Bar, 0, 2)
	for _, what := range []string{"exec attach", "download"} {
		bars = append(bars, harness.Bar{Contestant: "ours, " + what + company, Peer: "bare net/http, out" + company, Percentile: 50, Limit: limit, Rate: true})
	}
	return bars
}
