package engine_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core/engine/wire"
	"sandbox/core/options"
	"sandbox/test/boxes"
)

// running returns how many execs of a box run.
func running(t *testing.T, b *boxes.Box) (n int) {
	t.Helper()
	all, err := b.Engine.Execs(t.Context(), b.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Status == api.ExecRunning {
			n++
		}
	}
	return n
}

// A command whose start was given up ends, in whatever moment that was.
func TestStartGivenUp(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	for range 200 {
		ctx, cancel := context.WithTimeout(t.Context(), rand.N(4*time.Millisecond))
		p, err := b.Engine.Exec(ctx, b.ID, options.Exec{Cmd: []string{"sleep", "600"}})
		cancel()
		if err == nil {
			if err := p.Cancel(t.Context(), 0); err != nil {
				t.Error(err)
			}
			_ = p.Release()
		}
	}
	boxes.Await(t, "the end of all commands", func() bool { return running(t, b) == 0 })
}

// A command ends whose starter has gone before it was told of the start.
func TestStarterGone(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	conn := b.DialInit(t)
	conn.CloseRead() // init can tell it nothing, however late it is closed
	if err := conn.Send(wire.TypeStart, wire.Start{Cmd: []string{"sleep", "600"}}); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	boxes.Await(t, "the command to be canceled", func() bool {
		all, err := b.Engine.Execs(t.Context(), b.ID)
		return err == nil && len(all) == 1 && all[0].Status == api.ExecCanceled
	})
}
