package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/delta"
	"sandbox/core/engine/guest"
)

// diskFlags say where the disk of the box is kept.
type diskFlags struct {
	volume, image string
	life          int
}

// open opens what the disk needs, before anything of the box has run: the box may change
// what these names lead to. It returns nil for a box whose disk goes with its pod.
func (f diskFlags) open() (*guest.Disk, error) {
	if f.volume == "" {
		return nil, nil
	}
	volume, err := delta.OpenVolume(f.volume, f.life)
	if err != nil {
		return nil, err
	}
	image, err := os.Open(f.image)
	if err != nil {
		return nil, fmt.Errorf("open the image: %w", err)
	}
	root, err := os.OpenRoot("/")
	if err != nil {
		return nil, err
	}
	files, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	// The clock of files lags behind that of programs, by milliseconds.
	var began unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &began); err != nil {
		return nil, fmt.Errorf("read the clock of files: %w", err)
	}
	return &guest.Disk{
		Restore: func() error { return volume.Restore(root) },
		Save:    func() error { return volume.Save(files, image, time.Unix(began.Unix())) },
	}, nil
}
