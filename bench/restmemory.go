package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

const (
	largeFile     = 4 << 30 // bytes
	mostGrowth    = 32 << 20
	mostIdle      = 60 << 20
	restIdleBoxes = 100
)

// resident is the memory of the daemon: of all its pages, as the bars say.
func (s *service) resident() (int64, error) { return statusBytes(s.cmd.Process.Pid, "VmRSS:") }

// growth tells by how much the daemon's memory grew at most while f ran, beyond
// what it was before.
func (s *service) growth(f func() error) (before, peak int64, err error) {
	pid := s.cmd.Process.Pid
	if before, err = s.resident(); err != nil {
		return 0, 0, err
	}
	// 5 makes the peak what is in use now (proc(5)).
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return 0, 0, err
	}
	if err := f(); err != nil {
		return 0, 0, err
	}
	peak, err = statusBytes(pid, "VmHWM:")
	return before, peak, err
}

// measureRestFiles moves a large file in and out and watches the daemon.
func measureRestFiles(ctx context.Context, b *bench) (all []row, err error) {
	s, err := b.theService(ctx)
	if err != nil {
		return nil, err
	}
	err = s.withBox(ctx, func(box string) error {
		up := s.grows("upload", func() error {
			_, err := s.upload(ctx, box, largeFile)
			return err
		})
		down := s.grows("download", func() error {
			_, err := s.download(ctx, box, uploadedFile, largeFile)
			return err
		})
		all = []row{up, down}
		return nil
	})
	return all, err
}

// grows makes the row of something that may not make the daemon grow.
func (s *service) grows(what string, f func() error) row {
	r := s.alone(what, "MiB", 1)
	before, peak, err := s.growth(f)
	if err != nil {
		r.DidNotRun = err.Error()
		return r
	}
	r.weighs(peak-before, mostGrowth)
	return r
}

// alone makes a row without peers.
func (s *service) alone(what, unit string, n int) row {
	c := s.as(what, nil)
	return row{Contestant: c.name, Version: c.version, Isolation: c.isolation, Unit: unit, N: n}
}

// weighs fills in a size in bytes and judges it.
func (r *row) weighs(size, most int64) {
	r.P50 = float64(size) / (1 << 20)
	r.P99 = r.P50
	r.Bars = append(r.Bars, verdict{fmt.Sprintf("<= %d MiB", most>>20), r.P50, size <= most})
}

// measureRestIdle makes boxes over REST, uses each once, and looks at the daemon:
// one of its own, on which nothing else was measured.
func measureRestIdle(ctx context.Context, b *bench) (_ []row, err error) {
	s := &service{}
	defer func() { err = errors.Join(err, s.close(context.WithoutCancel(ctx))) }()
	if err := s.start(ctx, b, "idle"); err != nil {
		return nil, err
	}
	boxes, err := s.used(ctx, restIdleBoxes)
	r := s.alone("daemon", "MiB", len(boxes))
	if err == nil {
		var size int64
		size, err = s.resident()
		r.weighs(size, mostIdle)
	}
	for _, box := range boxes {
		_, failed := s.unix.RemoveBox(context.WithoutCancel(ctx), box, true)
		err = errors.Join(err, failed)
	}
	return []row{r}, err
}

// used makes boxes over REST and uses each once. It gives what was made also on
// failure.
func (s *service) used(ctx context.Context, n int) (boxes []string, err error) {
	for range n {
		box, err := s.unix.CreateBox(ctx, s.options())
		if err != nil {
			return boxes, err
		}
		boxes = append(boxes, box.ID)
		if _, err := s.exec(ctx, box.ID); err != nil {
			return boxes, err
		}
	}
	return boxes, nil
}
