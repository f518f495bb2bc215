package core

import (
	"context"
	"fmt"
	"io"

	"sandbox/api"
	"sandbox/core/fault"
)

// wakings is how often a box is brought up for one request. Once is not enough where
// somebody else stops or pauses it at the same time.
const wakings = 3

// Awake returns the record of the box, which runs. If it doesn't and has auto_start, it
// is started or resumed first, as by all methods that need it to run. Errors:
// BoxNotFound, InvalidState (it does not run), and with auto_start those of Start and
// Resume.
func (b *Box) Awake(ctx context.Context) (Record, error) {
	return awake(ctx, b, func() (Record, error) {
		rec, err := b.Record(ctx)
		if err == nil && rec.Status != api.Running {
			err = rec.NotRunning()
		}
		return rec, err
	})
}

// awake asks for something that needs the box to run. If that is refused because the box
// does not, and the box has auto_start, awake brings it up and asks again.
func awake[T any](ctx context.Context, b *Box, ask func() (T, error)) (T, error) {
	for woken := 0; ; woken++ {
		done, err := ask()
		if !fault.Is(err, fault.InvalidState) || woken == wakings {
			return done, err
		}
		can, failed := b.wake(ctx)
		if failed != nil {
			return done, failed
		}
		if !can {
			return done, err
		}
	}
}

// wake brings the box up, or waits for who does, and reports whether it may: it has
// auto_start.
func (b *Box) wake(ctx context.Context) (bool, error) {
	rec, err := b.Record(ctx)
	if err != nil || !rec.Options.AutoStart {
		return false, err
	}
	if rec.Status == api.Paused {
		_, err = b.Resume(ctx)
	} else {
		// The record of a box that is being stopped or started says that it runs, or that
		// it was made. The engine changes a box once at a time, so Start waits for that.
		_, err = b.Start(ctx)
	}
	if err == nil || fault.Is(err, fault.InvalidState) { // somebody else was faster
		return true, nil
	}
	return false, fmt.Errorf("bring up box %s, which has auto_start: %w", b.id, err)
}

// onceRead is content that can be read once, and remembers whether that has begun.
type onceRead struct {
	io.Reader
	begun bool
}

// Read implements [io.Reader].
func (o *onceRead) Read(p []byte) (int, error) {
	o.begun = true
	return o.Reader.Read(p)
}
