package measures

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
)

const (
	listedFiles = 10_000
	listMillis  = 50 // that a list of them may take
)

// measureRestList lists a directory of many files through the service, and with
// programs of the box that tell the same of each file.
func measureRestList(ctx context.Context, b *contestants.Field) (rows []harness.Row, err error) {
	s, err := b.Service(ctx)
	if err != nil {
		return nil, err
	}
	err = s.WithBox(ctx, func(box string) error {
		fill := fmt.Sprintf("mkdir /files; cd /files; i=0; while [ $i -lt %d ]; do : >file-$i; i=$((i+1)); done", listedFiles)
		if err := s.Shell(ctx, box, fill); err != nil {
			return err
		}
		rows = lists(ctx, b, s, box)
		return nil
	})
	return rows, err
}

// lists lists the files of a box in both ways.
func lists(ctx context.Context, b *contestants.Field, s *contestants.Service, box string) []harness.Row {
	byRoute := func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		doc, err := s.Get(ctx, fmt.Sprintf("%s/v1/boxes/%s/files:list?path=/files&page_size=%d", s.URL, box, listedFiles))
		took := time.Since(start)
		if err == nil {
			err = harness.Whole(int64(bytes.Count(doc, []byte(`"name":`))), listedFiles)
		}
		return took, err
	}
	byPrograms := func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		err := s.Shell(ctx, box, "find /files -exec stat -c '%n %F %s %a %u %g %U %G %y %N' {} +")
		return time.Since(start), err
	}
	all := b.Interleave(ctx, s.As("files:list", byRoute), s.As("find and stat by an exec", byPrograms))
	rows := harness.Rows(harness.Millis, all, harness.Bar{Contestant: "ours, files:list", Peer: "ours, find and stat by an exec", Percentile: 50, Limit: 0.6})
	if rows[0].DidNotRun == "" {
		rows[0].Bars = append(rows[0].Bars, harness.Most(listMillis, "ms", rows[0].P50))
	}
	return rows
}
