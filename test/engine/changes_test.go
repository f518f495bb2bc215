package engine_test

import (
	"context"
	"testing"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/test/boxes"
)

// Who follows the changes of a home is called once at first, and then for each
// kind of change that another process makes.
func TestChanges(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e, records := boxes.Open(t, home), record.Open(home)
	ctx, cancel := context.WithCancel(t.Context())
	calls, done := make(chan bool), make(chan error, 1)
	go func() { done <- e.Changes(ctx, func(removed bool) { calls <- removed }) }()
	if !<-calls {
		t.Error("at first, boxes may have been removed before")
	}
	b := record.Box{Record: core.Record{ID: boxes.ID(home, 1), Status: api.Stopped}}
	for _, step := range []struct {
		what    string
		change  func() error
		removed bool
	}{
		{"created", func() error { return records.Put(b.ID, b, false) }, false},
		{"changed", func() error { return records.Put(b.ID, b, false) }, false},
		{"removed", func() error { return records.Delete(b.ID) }, true},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		if removed := <-calls; removed != step.removed {
			t.Errorf("%s: removed is %v", step.what, removed)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
