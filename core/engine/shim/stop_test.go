package shim

import (
	"errors"
	"log/slog"
	"os/exec"
	"testing"

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
