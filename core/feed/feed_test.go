package feed_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"sandbox/core/feed"
)

// All things come in their order, and then the end, as often as it is asked for.
func TestFeed(t *testing.T) {
	t.Parallel()
	n, released := 0, make(chan struct{}, 1)
	f := feed.New(feed.Small, func() (int, error) {
		if n++; n > 1000 {
			return 0, io.EOF
		}
		return n, nil
	}, func() {}, func() { released <- struct{}{} })
	for i := 1; i <= 1000; i++ {
		if got, err := f.Next(t.Context()); err != nil || got != i {
			t.Fatalf("got %d, %v, want %d", got, err, i)
		}
	}
	for range 2 {
		if _, err := f.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("behind the end: %v", err)
		}
	}
	<-released
	_, _ = f.Close(), f.Close()
}

// A wait that is given up loses nothing, and Close ends a read that waits.
func TestFeedWaits(t *testing.T) {
	t.Parallel()
	from := make(chan int)
	f := feed.New(feed.Small, func() (int, error) {
		if n, ok := <-from; ok {
			return n, nil
		}
		return 0, io.ErrUnexpectedEOF
	}, func() { close(from) }, func() {})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Next(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	from <- 7
	if got, err := f.Next(t.Context()); err != nil || got != 7 {
		t.Errorf("got %d, %v", got, err)
	}
	_ = f.Close()
	if _, err := f.Next(t.Context()); !errors.Is(err, context.Canceled) {
		t.Error("a closed feed has more")
	}
}

// TestFeedDropsWhatACutMakes closes feeds whose source returns one more thing when it
// is cut, as a watch does that takes a cut for the end of its box.
func TestFeedDropsWhatACutMakes(t *testing.T) {
	t.Parallel()
	for range 200 {
		cut := make(chan struct{})
		f := feed.New(feed.Small, func() (int, error) {
			<-cut
			return 1, nil
		}, func() { close(cut) }, func() {})
		read := make(chan error, 1)
		go func() {
			_, err := f.Next(t.Context())
			read <- err
		}()
		_ = f.Close()
		if err := <-read; !errors.Is(err, context.Canceled) {
			t.Fatalf("a read that was ended returned %v", err)
		}
	}
}
