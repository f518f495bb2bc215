package spool

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"sandbox/core"
	"sandbox/core/enginetest/fake"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// far is a box whose init keeps less of an exec's output than the server before has had.
type far struct {
	*fake.Engine
	from core.Position
}

func (f *far) Attach(ctx context.Context, box, exec string, have *core.Position) (*core.Process, error) {
	p, err := f.Engine.Attach(ctx, box, exec, have)
	if err == nil {
		p.From = f.from
	}
	return p, err
}

// TestTakeOver has a store go on with the exec of another one. What only that one has is
// a gap, also in the numbers of events, and stays one when the store is opened again.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	engine := &far{Engine: fake.NewEngine(t), from: core.Position{Stdout: 4, Stderr: 0}}
	rt := core.New(core.Config{Engine: engine})
	o := options.Defaults()
	o.RootfsPath, o.AutoRemove = "/", false
	box, _, err := rt.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	first := &home{Open(Config{Dir: filepath.Join(t.TempDir(), "spool")}), rt, box}
	flag := filepath.Join(t.TempDir(), "mark")
	e := first.sh(t, "echo one; while ! test -e "+flag+"; do sleep 0.01; done; echo two; echo three >&2")
	events, err := e.Events(0)
	if err != nil {
		t.Fatal(err)
	}
	before := &heard{}
	before.follow(t, events, func() bool { return before.out[Stdout].Len() == 4 })
	events.Close()
	first.Close()

	second := &home{Open(Config{Dir: filepath.Join(t.TempDir(), "spool")}), rt, box}
	t.Cleanup(func() { second.Close() })
	var attached atomic.Int64
	attach := func(ctx context.Context, have core.Position) (*core.Exec, error) {
		attached.Add(1)
		return box.AttachBehind(ctx, e.Record().ID, have)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := second.TakeOver(t.Context(), box.ID(), e.Record().ID, attach); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if attached.Load() != 1 {
		t.Errorf("attached %d times", attached.Load())
	}
	second.again(t)
	taken, err := second.Get(box.ID(), e.Record().ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for after, from := range map[int64]int64{0: 1, before.seqs[0]: before.seqs[0] + 1} {
		got := listen(t, taken, after)
		if len(got.gaps) != 1 || got.kinds[0] != Gap || got.gaps[0].From != from || got.gaps[0].Next != (mark{4, 0}) || got.gaps[0].To < before.seqs[len(before.seqs)-1] {
			t.Errorf("gaps %+v", got.gaps)
		}
		if got.out[Stdout].String() != "two\n" || got.out[Stderr].String() != "three\n" {
			t.Errorf("stdout %q, stderr %q", &got.out[Stdout], &got.out[Stderr])
		}
	}
	if rec := taken.Record(); *rec.StdoutBytes != 8 || *rec.StderrBytes != 6 {
		t.Errorf("%d and %d bytes", *rec.StdoutBytes, *rec.StderrBytes)
	}
	a, err := taken.Attach([2]int64{6, 0})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if out, _ := a.From(); out != 6 {
		t.Errorf("an attach behind byte 6 begins at %d", out)
	}
}

// TestTakeOverRefused has one whose server is there refused, and leave nothing.
func TestTakeOverRefused(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	refused := func(context.Context, core.Position) (*core.Exec, error) {
		return nil, fault.New(fault.InvalidState, "another reader")
	}
	id := "exec_00000000000000000000"
	if _, err := h.TakeOver(t.Context(), h.box.ID(), id, refused); !fault.Is(err, fault.InvalidState) {
		t.Errorf("%v", err)
	}
	if places := h.Places(h.box.ID()); len(places) != 0 {
		t.Errorf("%v", places)
	}
}
