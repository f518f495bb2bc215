package engine_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/members"
	"sandbox/test/rootfs"
)

// 300 boxes are asked for at once: each runs, or is refused with what to do,
// and neither leaves anything.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	const asked = 300
	recs, errs := make([]core.Record, asked), make([]error, asked)
	var wg sync.WaitGroup
	for i := range asked {
		wg.Go(func() { recs[i], errs[i] = n.box(t, options.Port{GuestPort: 80, Protocol: options.ProtocolTCP}) })
	}
	wg.Wait()
	made := 0
	for i, err := range errs {
		switch {
		case err == nil && recs[i].Status == api.Running:
			made++
		case !fault.Is(err, fault.ResourceExhausted) || !strings.Contains(err.Error(), "try again"):
			t.Errorf("box %d: %+v, %v", i, recs[i], err)
		}
	}
	if made < 200 { // the queue has room for them; who comes when it is full is up to the machine
		t.Errorf("%d of %d were made", made, asked)
	}
	one := slices.IndexFunc(errs, func(err error) bool { return err == nil })
	if out, _ := boxes.Output(t, n.engine, recs[one].ID, options.Exec{Cmd: []string{"echo", "alive"}}); out != "alive\n" {
		t.Errorf("one of them says %q", out)
	}
	for i := range recs {
		if errs[i] == nil {
			wg.Go(func() { n.remove(t, recs[i].ID) })
		}
	}
	wg.Wait()
	if left, err := n.engine.List(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	n.nothingLeft(t)
}

// Whoever leaves the queue gets no box, also if it was about to be his turn.
func TestLeaveLine(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.Open(t, home)
	root := rootfs.Busybox(t)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*5*time.Millisecond) // some are there by then
			defer cancel()
			_, err := boxes.Create(ctx, e, boxes.ID(home, i), root)
			if err == nil {
				err = e.Remove(t.Context(), boxes.ID(home, i), true)
			}
			if err != nil && !fault.Is(err, fault.Timeout) {
				t.Errorf("box %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if left, err := e.List(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A create that is asked for again, as after the death of a shim, returns the box
// in whatever state it is, and makes no second one.
func TestCreateAgain(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.Open(t, home)
	id, root := boxes.ID(home, 1), rootfs.Busybox(t)
	first, err := boxes.Create(t.Context(), e, id, root)
	if err != nil {
		t.Fatal(err)
	}
	again := func(when string, status api.BoxStatus, pid int) {
		t.Helper()
		rec, err := boxes.Create(t.Context(), e, id, root)
		members.Equal(t, when, members.Of{"failure": {err, nil}, "id": {rec.ID, id}, "status": {rec.Status, status}, "pid": {rec.PID, pid}})
	}
	again("it runs", api.Running, first.PID)
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	boxes.AwaitState(t, e, id, api.Failed)
	again("its init was killed", api.Failed, 0)
	if _, err := e.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Stop(t.Context(), id, time.Second); err != nil {
		t.Fatal(err)
	}
	again("it was stopped", api.Stopped, 0)
	if err := e.Remove(t.Context(), id, true); err != nil {
		t.Error(err)
	}
}
