package spool

import (
	"errors"
	"os"
	"slices"
	"testing"

	"sandbox/api"
	"sandbox/test/frozen"
)

// TestEndThatCantBeWritten checks that an end that can't be written is known
// from memory and is written as soon as possible. A store that is opened before
// that asks the box's init for it.
func TestEndThatCantBeWritten(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(*testing.T, *home, func()){
		"written later": func(t *testing.T, h *home, thaw func()) {
			thaw()
			h.Close() // a last try is made before this returns
			h.again(t)
		},
		"asked for": func(t *testing.T, h *home, thaw func()) {
			h.again(t)
			thaw()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, 0)
			e, start := h.gated(t, "exit 5")
			thaw := frozen.Dir(t, h.boxDir(h.box.ID()))
			start()
			if err := e.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantEnd := func(when string) {
				t.Helper()
				got, err := h.Get(h.box.ID(), e.Record().ID)
				if err != nil {
					t.Fatal(err)
				}
				if rec := got.Record(); rec.Status != api.ExecFailed || rec.ExitCode == nil || *rec.ExitCode != 5 {
					t.Errorf("%s: the exec is %s, %v", when, rec.Status, rec.ExitCode)
				}
			}
			wantEnd("while it can't be written")
			if got := listen(t, e, 0); !slices.Equal(got.kinds, []Kind{Exit}) {
				t.Errorf("events %v", got.kinds)
			}
			next(t, h, thaw)
			wantEnd("in the next store")
		})
	}
}

// inTurn returns a command that has ended and whose output has an event for each line: the
// next one is printed when the one before was read.
func inTurn(t *testing.T, h *home, lines ...string) *Exec {
	t.Helper()
	e := h.exec(t, reading)
	v, err := e.Events(0)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	command, err := e.running()
	if err != nil {
		t.Fatal(err)
	}
	read := &heard{}
	for n, line := range lines {
		if _, err := command.Stdin().WriteString(line); err != nil {
			t.Fatal(err)
		}
		read.follow(t, v, func() bool { return len(read.seqs) > n })
	}
	if err := errors.Join(command.CloseStdin(t.Context()), e.Wait(t.Context())); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestIndexCut checks that output which is not in the index of an ended exec
// any more becomes a gap instead of missing silently. A reader of bytes gets
// all of it.
func TestIndexCut(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(string) error{
		"in the middle": func(file string) error { return os.Truncate(file, 2*markSize) },
		"whole":         func(file string) error { return os.Truncate(file, 0) },
		"gone":          os.Remove,
		"overwritten":   func(file string) error { return os.WriteFile(file, []byte("no index, but as long"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, 0)
			e := inTurn(t, h, "one\n", "two\n", "three\n")
			h.Close()
			if err := damage(e.out.base + indexSuffix); err != nil {
				t.Fatal(err)
			}
			h.again(t)
			stored, err := h.Get(h.box.ID(), e.Record().ID)
			if err != nil {
				t.Fatal(err)
			}
			got := listen(t, stored, 0)
			if n := len(got.kinds); n < 2 || got.kinds[n-2] != Gap || got.kinds[n-1] != Exit || len(got.gaps) != 1 || got.gaps[0].Next[Stdout] != 14 {
				t.Errorf("events %v, gaps %+v", got.kinds, got.gaps)
			}
			a, err := stored.Attach([2]int64{})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			var bytes []byte
			for ended := false; !ended; ended, _ = a.Ended() {
				buf := make([]byte, 64)
				_, n, err := a.Next(buf)
				if err != nil {
					t.Fatal(err)
				}
				bytes = append(bytes, buf[:n]...)
			}
			if string(bytes) != "one\ntwo\nthree\n" {
				t.Errorf("attached: %q", bytes)
			}
		})
	}
}

// TestDamagedExec checks that a damaged record of an exec hides no other, and
// that its exec is shown as failed.
func TestDamagedExec(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	whole, damaged := h.sh(t, "exit 3"), h.sh(t, "echo kept")
	for _, e := range []*Exec{whole, damaged} {
		if err := e.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	h.Close()
	if err := os.Truncate(damaged.out.base+".json", 10); err != nil {
		t.Fatal(err)
	}
	h.again(t)
	if places := h.Places(h.box.ID()); len(places) != 2 {
		t.Errorf("listed: %v", places)
	}
	for when := range 2 { // first the record is set aside, then the one in its place is read
		e, err := h.Get(h.box.ID(), damaged.Record().ID)
		if err != nil {
			t.Fatal(err)
		}
		if rec := e.Record(); rec.Status != api.ExecFailed || rec.ExitCode != nil || rec.StdoutBytes == nil || *rec.StdoutBytes != 5 {
			t.Errorf("look %d: %+v", when, rec)
		}
		if got := listen(t, e, 0); got.out[Stdout].String() != "kept\n" {
			t.Errorf("look %d: output %q", when, got.out[Stdout].String())
		}
	}
	if e, err := h.Get(h.box.ID(), whole.Record().ID); err != nil || *e.Record().ExitCode != 3 {
		t.Errorf("the other: %v", err)
	}
	if _, err := os.Stat(damaged.out.base + ".damaged"); err != nil {
		t.Error(err)
	}
}
