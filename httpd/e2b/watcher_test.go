package e2b

import (
	"errors"
	"testing"

	"sandbox/httpd/e2b/protocol"
)

// A client is told that events were lost behind those before them, and has been told when
// it gets later ones.
func TestWatcherTellsOfLostEvents(t *testing.T) {
	t.Parallel()
	one := func(name string) []*protocol.FilesystemEvent { return []*protocol.FilesystemEvent{{Name: name}} }
	w := &watcher{}
	w.keep(one("before"), nil)
	w.keep(nil, errOverflow)
	w.keep(one("lost"), nil)
	if events, err := w.take(); err != nil || len(events) != 1 || events[0].GetName() != "before" {
		t.Errorf("first: %v, %v", events, err)
	}
	if _, err := w.take(); !errors.Is(err, errOverflow) {
		t.Errorf("then: %v", err)
	}
	w.keep(one("later"), nil)
	if events, err := w.take(); err != nil || len(events) != 1 || events[0].GetName() != "later" {
		t.Errorf("last: %v, %v", events, err)
	}
}
