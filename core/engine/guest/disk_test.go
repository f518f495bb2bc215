package guest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// diskVariable names the directory of the disk of a pod of the tests. It is full or
// damaged if a file there says so.
const diskVariable = Private + "DISK"

func testDisk() *Disk {
	dir := os.Getenv(diskVariable)
	if dir == "" {
		return nil
	}
	unless := func(name string, do func() error) func() error {
		return func() error {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return errors.New(name)
			}
			return do()
		}
	}
	return &Disk{
		Restore: unless("damaged", func() error { return nil }),
		Save:    unless("full", func() error { return os.WriteFile(filepath.Join(dir, "saved"), nil, 0o600) }),
	}
}

func put(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func saved(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "saved"))
	return err == nil
}

// TestDiskStop stops a box whose disk can't be saved at first.
func TestDiskStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := claimedPod(t, diskVariable+"="+dir)
	put(t, dir, "full")
	e := p.sh("echo up; exec sleep 1000")
	e.line()
	f := p.ask(wire.TypeStop, wire.Stop{GraceMS: 10_000})
	var failure wire.Error
	if err := f.Decode(&failure); f.Type != wire.TypeError || err != nil || failure.Kind != fault.Storage || !strings.Contains(failure.Message, "full") {
		t.Errorf("a stop with a full disk: frame %d: %s", f.Type, f.Body)
	}
	if end := e.end(); end.Signal != int(unix.SIGTERM) {
		t.Errorf("%+v", end)
	}
	e = p.sh("echo on")
	if out, end := e.rest(), e.end(); out != "on\n" || end.ExitCode != 0 {
		t.Errorf("it did not go on: %q, %+v", out, end)
	}
	if err := os.Remove(filepath.Join(dir, "full")); err != nil {
		t.Fatal(err)
	}
	if f := p.ask(wire.TypeStop, wire.Stop{GraceMS: 10_000}); f.Type != wire.TypeStopped || !saved(dir) {
		t.Errorf("frame %d: %s; saved: %v", f.Type, f.Body, saved(dir))
	}
	if err := p.Wait(); err != nil || p.Output.String() != wire.EndedOnRequest+"\n" {
		t.Errorf("%v: %s", err, p.Output.String())
	}
}

// TestDiskSignal ends boxes from outside, as the kubelet does.
func TestDiskSignal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		claimed, full bool
		saved         bool
		ended         string
	}{
		{"saved", true, false, true, wire.EndedSaved},
		{"full", true, true, false, wire.EndedUnsaved},
		{"unclaimed", false, false, false, wire.EndedSaved},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := startPod(t, diskVariable+"="+dir)
			if tt.claimed {
				p.ask(wire.TypeConfig, wire.Config{})
			} else {
				p.ask(wire.TypeExecs, nil)
			}
			if tt.full {
				put(t, dir, "full")
			}
			if err := p.Process.Signal(unix.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := p.Wait(); err != nil || !strings.HasPrefix(p.Output.String(), tt.ended) || saved(dir) != tt.saved {
				t.Errorf("%v: %s; saved: %v", err, p.Output.String(), saved(dir))
			}
		})
	}
}

// TestDiskDamaged starts a box whose disk can't be put back: nothing runs in it.
func TestDiskDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "damaged")
	p := startPod(t, diskVariable+"="+dir)
	if err := p.Wait(); err != nil || p.Output.String() != wire.EndedUnrestored+"damaged\n" {
		t.Errorf("%v: %s", err, p.Output.String())
	}
}

// TestDiskStops stops a box twice at once: both wait until the disk is saved.
func TestDiskStops(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := claimedPod(t, diskVariable+"="+dir)
	e := p.sh("trap 'sleep 0.3; exit' TERM; echo up; while :; do sleep 0.01; done")
	e.line()
	first, second := p.send(wire.TypeStop, wire.Stop{GraceMS: 10_000}), p.send(wire.TypeStop, wire.Stop{GraceMS: 10_000})
	for _, conn := range []*wire.Conn{second, first} {
		if f, err := conn.Recv(); err == nil && f.Type != wire.TypeStopped || !saved(dir) { // one may be cut by the end
			t.Errorf("frame %d: %s, %v; saved: %v", f.Type, f.Body, err, saved(dir))
		}
	}
}
