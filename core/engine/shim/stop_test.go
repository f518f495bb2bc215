package shim

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"testing"
	"testing/synctest"

	"sandbox/api"
	"sandbox/core/engine/process"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/test/boxes"
)

// TestStopOutlivesTheShim stops a box whose init an earlier shim has asked to: it answers
// nothing to a second stop, and is not killed for that before the grace period is over.
func TestStopOutlivesTheShim(t *testing.T) {
	t.Parallel()
	k := &keeper{home: t.TempDir(), log: slog.New(slog.DiscardHandler)}
	k.records = record.Open(k.home)
	init := exec.Command("cat") // runs until its input ends
	input, err := init.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := init.Start(); err != nil {
		t.Fatal(err)
	}
	h, err := process.Hold(init.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	b := &box{life: &life{handle: h}, ended: &ending{noted: make(chan struct{})}}
	b.rec.ID, b.rec.Status, b.rec.Stopping = "box_stop", api.Running, true
	boxes.Serve(t, record.Dir(k.home, b.rec.ID), wire.InitSocket, func(conn *wire.Conn) {
		if f, err := conn.Recv(); err != nil || f.Type != wire.TypeStop {
			t.Errorf("init was asked for %d, %v", f.Type, err)
		}
		_ = conn.Close()
		close(b.ended.noted) // so that the stop returns, with which all that it does to init is done
	})
	if err := k.finishStop(b, b.record()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(input.Close(), init.Wait()); err != nil {
		t.Errorf("init could not end by itself: %v", err)
	}
}

// TestRemovedAsItEnds stops and removes boxes that have just ended by themselves: both wait
// until that is noted, which writes the record too.
func TestRemovedAsItEnds(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for name, c := range map[string]struct {
		do   func(*keeper, *box) error
		want string
		left bool // the box's record
	}{
		"stop":   {func(k *keeper, b *box) error { _, err := k.stopBox(b, 0); return err }, "box box_stop is not running", true},
		"remove": {(*keeper).removeBox, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k := &keeper{home: home, log: slog.New(slog.DiscardHandler), records: record.Open(home), boxes: map[string]*box{}}
				b := &box{ended: &ending{noted: make(chan struct{})}, stale: true}
				b.rec.ID, b.rec.Status = "box_"+name, api.Failed
				if err := makeDirs(k.records.Path, record.Dir(k.home, b.rec.ID)); err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				go func() { done <- c.do(k, b) }()
				synctest.Wait()
				select {
				case err := <-done:
					t.Errorf("it did not wait: %v", err)
					done <- err
				default:
				}
				// noteEnd goes on, which had looked at the box before it was to be removed.
				b.ended.err = k.records.Put(b.rec.ID, b.rec, true)
				b.mu.Lock()
				b.stale = false
				b.mu.Unlock()
				close(b.ended.noted)
				if err := <-done; fmt.Sprint(err) != cmp.Or(c.want, "<nil>") {
					t.Errorf("got %v, want %q", err, c.want)
				}
				if _, err := k.records.Get(b.rec.ID); (err == nil) != c.left {
					t.Errorf("the record: %v", err)
				}
			})
		})
	}
}
