package measures

import (
	"context"
	"errors"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
)

const (
	largeFile     = 4 << 30 // bytes
	mostGrowth    = 32 << 20
	mostIdle      = 60 << 20
	restIdleBoxes = 100
)

// measureRestFiles copies a large file into a box and out of it, and watches
// the daemon's memory.
func measureRestFiles(ctx context.Context, b *contestants.Field) (all []harness.Row, err error) {
	s, err := b.Service(ctx)
	if err != nil {
		return nil, err
	}
	err = s.WithBox(ctx, func(box string) error {
		up := grows(s, "upload", func() error {
			_, err := s.Upload(ctx, box, largeFile)
			return err
		})
		down := grows(s, "download", func() error {
			_, err := s.Download(ctx, box, contestants.UploadedFile, largeFile)
			return err
		})
		all = []harness.Row{up, down}
		return nil
	})
	return all, err
}

// grows returns the row for something that must not make the daemon grow.
func grows(s *contestants.Service, what string, f func() error) harness.Row {
	r := s.Alone(what, "MiB", 1)
	before, peak, err := s.Growth(f)
	if err != nil {
		r.DidNotRun = err.Error()
		return r
	}
	r.Weighs(peak-before, mostGrowth)
	return r
}

// measureRestIdle makes boxes over REST, uses each once, and measures the
// daemon. It has a daemon of its own, on which nothing else was measured.
func measureRestIdle(ctx context.Context, b *contestants.Field) (_ []harness.Row, err error) {
	s := &contestants.Service{}
	defer func() { err = errors.Join(err, s.Close(context.WithoutCancel(ctx))) }()
	if err := s.Start(ctx, b, "idle"); err != nil {
		return nil, err
	}
	boxes, err := s.Used(ctx, restIdleBoxes)
	r := s.Alone("daemon", "MiB", len(boxes))
	if err == nil {
		var size int64
		size, err = s.Resident()
		r.Weighs(size, mostIdle)
	}
	for _, box := range boxes {
		_, failed := s.Unix.RemoveBox(context.WithoutCancel(ctx), box, true)
		err = errors.Join(err, failed)
	}
	return []harness.Row{r}, err
}
