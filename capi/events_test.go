package main

import (
	"context"
	"io"
	"testing"

	"sandbox/core/fault"
	"sandbox/core/feed"
)

// A read that does not wait tells an event, the end and a failure of the source as one
// that waits does. Only where there is nothing yet has its time run out.
func TestNextOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source error // what ends the source behind its first event; nil for nothing
		want   fault.Kind
	}{
		"nothing yet":     {nil, fault.Timeout},
		"end":             {io.EOF, fault.InvalidState},
		"failure":         {fault.New(fault.Unavailable, "the server has gone"), fault.Unavailable},
		"failure by time": {fault.Wrap(fault.Unavailable, context.DeadlineExceeded, "wait for the server"), fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told, stop := make(chan string, 1), make(chan struct{})
			told <- "first"
			source := feed.New(1, func() (string, error) {
				select {
				case event := <-told:
					return event, nil
				default:
				}
				if c.source != nil {
					return "", c.source
				}
				<-stop
				return "", context.Canceled
			}, func() { close(stop) }, func() {})
			e, err := newEvents(source, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = e.Close() }()
			if first, err := nextOf(-1, e.next, "ended", "quiet"); err != nil || *first != "first" {
				t.Fatalf("first event: %v, %v", first, err)
			}
			if c.source != nil { // the descriptor says when it is there
				if _, err := nextOf(-1, e.next, "ended", "quiet"); !fault.Is(err, c.want) {
					t.Errorf("a read that waits: %v, want %v", err, c.want)
				}
			}
			if event, err := nextOf(0, e.next, "ended", "quiet"); !fault.Is(err, c.want) {
				t.Errorf("a read that does not wait: %v, %v, want %v", event, err, c.want)
			}
		})
	}
}
