package engine_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/programs"
	"sandbox/test/rootfs"
)

// The shim is killed at many moments of a create. Other boxes go on, the
// create either happens or fails as a whole, and the next use of the home
// finds nothing half-made.
func TestShimKilledInCreate(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.Open(t, home)
	root := rootfs.Busybox(t)
	ctx := t.Context()
	other := boxes.ID(home, 1000)
	if _, err := boxes.Create(ctx, e, other, root); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		pid := boxes.ShimPID(t, home)
		done := make(chan error)
		go func() {
			_, err := boxes.Create(ctx, e, boxes.ID(home, i), root)
			done <- err
		}()
		time.Sleep(time.Duration(i) * time.Millisecond / 2) // where in the create the kill comes
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		err := <-done
		if err != nil && !fault.Is(err, fault.Engine) {
			t.Errorf("killed after %d half ms: %v, want engine_error or success", i, err)
		}
		if out, _ := boxes.Output(t, e, other, options.Exec{Cmd: []string{"echo", "alive"}}); out != "alive\n" {
			t.Fatalf("the other box says %q", out)
		}
		switch removed := e.Remove(ctx, boxes.ID(home, i), true); {
		case err == nil && removed != nil:
			t.Errorf("created, but: %v", removed)
		case err != nil && !fault.Is(removed, fault.BoxNotFound):
			t.Errorf("failed with %v, but is there: remove says %v", err, removed)
		}
	}
	if err := e.Remove(ctx, other, true); err != nil {
		t.Error(err)
	}
	if recs, err := e.List(ctx); err != nil || len(recs) != 0 {
		t.Errorf("left: %v, %v", recs, err)
	}
}

// TestOwnerKilled kills a process that owns boxes: they go with it, also when
// the shim was replaced meanwhile or is out of descriptors for a while, or they are
// paused; a box it does not own lives on.
func TestOwnerKilled(t *testing.T) {
	t.Parallel()
	for _, shim := range []string{"", "replaced", "short", "paused"} {
		home := t.TempDir()
		e := boxes.Open(t, home)
		owner := exec.Command(os.Args[0])
		owner.Env = append(os.Environ(), "OWNER_HOME="+home, "OWNER_ROOT="+rootfs.Busybox(t))
		said, err := owner.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := owner.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := said.Read(make([]byte, 16)); err != nil {
			t.Fatal(err)
		}
		recs, err := e.List(t.Context())
		if err != nil || len(recs) != 2 {
			t.Fatalf("got %v, %v, want an owned and a free box", recs, err)
		}
		pid, enough := boxes.ShimPID(t, home), func() {}
		switch shim {
		case "replaced":
			_ = syscall.Kill(pid, syscall.SIGKILL)
		case "short":
			enough = boxes.Descriptors(t, pid, 3)
		case "paused":
			if _, err := e.Pause(t.Context(), boxes.ID(home, 1), false); err != nil {
				t.Fatal(err)
			}
		}
		_ = owner.Process.Kill()
		_ = owner.Wait()
		switch shim {
		case "replaced": // the next use of the home starts another shim
			if err := e.Remove(t.Context(), boxes.ID(home, 3), true); !fault.Is(err, fault.BoxNotFound) {
				t.Errorf("got %v", err)
			}
		case "short":
			boxes.Await(t, "the removal to fail", func() bool {
				log, err := os.ReadFile(filepath.Join(home, "engine", "shim.log"))
				return err == nil && strings.Contains(string(log), "remove a box that nobody owns")
			})
			enough()
		}
		awaitBoxes(t, e, boxes.ID(home, 2))
		if err := e.Remove(t.Context(), boxes.ID(home, 2), true); err != nil {
			t.Error(err)
		}
	}
}

// own is a process that makes one box it owns and one it does not, and waits
// for its death.
func own(home, root string) {
	e, err := engine.Open(engine.Config{Home: home, HelperDir: programs.Dir()})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := boxes.Create(context.Background(), e, boxes.ID(home, 2), root); err != nil {
		log.Fatal(err)
	}
	o := options.Defaults()
	o.RootfsPath = root
	req := core.CreateRequest{ID: boxes.ID(home, 1), Options: o, Image: core.Image{Layers: []string{root}}, Owned: true}
	if _, err := e.Create(context.Background(), req); err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready")
	select {}
}

// awaitBoxes waits until exactly these boxes are left.
func awaitBoxes(t *testing.T, e core.Engine, want ...string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		recs, err := e.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, r := range recs {
			ids = append(ids, r.ID)
		}
		if fmt.Sprint(ids) == fmt.Sprint(want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left are %v, want %v", ids, want)
		}
	}
}

// TestShimLeaves comes to a home while its shim goes: that one has no
// socket any more, and still the lock.
func TestShimLeaves(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.Open(t, home)
	if err := os.Mkdir(filepath.Join(home, "engine"), 0o700); err != nil {
		t.Fatal(err)
	}
	old, err := os.OpenFile(filepath.Join(home, "engine", wire.ShimLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if err := syscall.Flock(int(old.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	root := rootfs.Busybox(t)
	time.AfterFunc(300*time.Millisecond, func() { _ = old.Close() }) // how long it takes to go
	if _, err := boxes.Create(t.Context(), e, boxes.ID(home, 1), root); err != nil {
		t.Fatal(err)
	}
	if err := e.Remove(t.Context(), boxes.ID(home, 1), true); err != nil {
		t.Error(err)
	}
}

// TestInitKilled kills a box's init from outside: the command in it is lost,
// the box has failed and says why, and can be started again.
func TestInitKilled(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.Open(t, home)
	rec, err := boxes.Create(t.Context(), e, boxes.ID(home, 1), rootfs.Busybox(t))
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Exec(t.Context(), rec.ID, options.Exec{Cmd: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	if err := syscall.Kill(rec.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if status, err := p.Exit(); err != nil || status.Status != api.ExecLost {
		t.Errorf("got %v, %v, want a lost command", status, err)
	}
	boxes.AwaitState(t, e, rec.ID, api.Failed)
	_, err = e.Exec(t.Context(), rec.ID, options.Exec{Cmd: []string{"true"}})
	if !fault.Is(err, fault.InvalidState) {
		t.Errorf("got %v, want invalid_state", err)
	}
	if _, err := e.Start(t.Context(), rec.ID); err != nil {
		t.Fatal(err)
	}
	if out, _ := boxes.Output(t, e, rec.ID, options.Exec{Cmd: []string{"echo", "again"}}); out != "again\n" {
		t.Errorf("got %q", out)
	}
	if err := e.Remove(t.Context(), rec.ID, true); err != nil {
		t.Error(err)
	}
}
