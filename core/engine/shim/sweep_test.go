package shim

import (
	"log/slog"
	"testing"

	"sandbox/api"
	"sandbox/core/engine/record"
)

// TestSettleHoldsTheBox wants requests for a box to wait until what an earlier shim had begun
// is done. A stop that broke off is asked for again, the box is started, and the stop of before
// would end it.
func TestSettleHoldsTheBox(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*record.Box){
		"removal":  func(rec *record.Box) { rec.Removing, rec.Stopping = true, true },
		"rollback": func(rec *record.Box) { rec.Returning, rec.Stopping = &[]string{}, true },
		"stop":     func(rec *record.Box) { rec.Stopping = true },
		"pause":    func(rec *record.Box) { rec.Pausing = true },
		"paused":   func(rec *record.Box) { rec.Status = api.Paused },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &keeper{home: t.TempDir(), log: slog.New(slog.DiscardHandler), idle: newIdle(lingering)}
			b := &box{ended: &ending{noted: make(chan struct{})}} // the work waits for the note
			b.rec.Status = api.Running
			change(&b.rec)
			k.settle(b, b.record())
			if b.change.TryLock() {
				t.Fatal("a request may come in between")
			}
			close(b.ended.noted)
			b.change.Lock()
		})
	}
}
