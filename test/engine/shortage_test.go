package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/frozen"
	"sandbox/test/rootfs"
)

// Below the floor of free space no box is made or started; what runs goes on.
func TestDiskFloor(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	low := boxes.OpenConfig(t, engine.Config{Home: b.Home, DiskFloorMiB: 1 << 30})
	if _, err := boxes.Create(t.Context(), low, boxes.NextID(b.Home), b.Root); !fault.Is(err, fault.Storage) || !strings.Contains(err.Error(), "disk_floor_mib") {
		t.Errorf("create: %v, want storage_error", err)
	}
	if out, s := boxes.Output(t, low, b.ID, options.Exec{Cmd: []string{"echo", "on"}}); out != "on\n" {
		t.Errorf("a running box: %q, %+v", out, s)
	}
	if _, err := low.Stop(t.Context(), b.ID, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := low.Start(t.Context(), b.ID); !fault.Is(err, fault.Storage) {
		t.Errorf("start: %v, want storage_error", err)
	}
	usual := boxes.OpenConfig(t, engine.Config{Home: b.Home, DiskFloorMiB: engine.DefaultDiskFloor})
	if _, err := usual.Start(t.Context(), b.ID); err != nil {
		t.Errorf("start above the floor: %v", err)
	}
}

// A start and a stop whose record can't be written say so, and leave a box that
// can be started, stopped and removed.
func TestRecordsFrozen(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	ctx, records := t.Context(), filepath.Join(b.Home, "records")

	thaw := frozen.Dir(t, records)
	for range 2 { // the second finds the box stopped, and the record still running
		if _, err := b.Engine.Stop(ctx, b.ID, time.Second); !fault.Is(err, fault.Storage) {
			t.Errorf("stop: %v, want storage_error", err)
		}
	}
	if _, err := b.Engine.Start(ctx, b.ID); !fault.Is(err, fault.Storage) {
		t.Errorf("start: %v, want storage_error", err)
	}
	thaw()
	if _, err := b.Engine.Stop(ctx, b.ID, time.Second); !fault.Is(err, fault.InvalidState) {
		t.Errorf("stop of a box that does not run: %v, want invalid_state", err)
	}
	if rec, err := b.Engine.Get(ctx, b.ID); err != nil || rec.Status != api.Stopped {
		t.Errorf("after a stop that could not be written, the record says %v, %v", rec.Status, err)
	}
	if rec, err := b.Engine.Start(ctx, b.ID); err != nil || rec.Status != api.Running {
		t.Fatalf("start: %v, %v", rec.Status, err)
	}
	if out := b.Sh(t, "echo again"); out != "again\n" {
		t.Errorf("the box answers %q", out)
	}
	if rec, err := b.Engine.Stop(ctx, b.ID, time.Second); err != nil || rec.Status != api.Stopped {
		t.Errorf("stop: %v, %v", rec.Status, err)
	}
	if rec, err := b.Engine.Get(ctx, b.ID); err != nil || rec.Status != api.Stopped {
		t.Errorf("the record says %v, %v", rec.Status, err)
	}
}

// The end of a box that can't be written is written as soon as it can be, without
// another call.
func TestEndRecordedLater(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	thaw := frozen.Dir(t, filepath.Join(b.Home, "records"))
	if _, err := b.Engine.Stop(t.Context(), b.ID, time.Second); !fault.Is(err, fault.Storage) {
		t.Errorf("stop: %v, want storage_error", err)
	}
	thaw()
	boxes.AwaitState(t, b.Engine, b.ID, api.Stopped)
}

// The shim is killed at many moments of a start. The box can be started
// afterwards, has one init, and goes with all that it had.
func TestShimKilledInStart(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	ctx := t.Context()
	for i := range 40 {
		if _, err := b.Engine.Stop(ctx, b.ID, time.Second); err != nil {
			t.Fatal(err)
		}
		pid, done := boxes.ShimPID(t, b.Home), make(chan error)
		go func() {
			_, err := b.Engine.Start(ctx, b.ID)
			done <- err
		}()
		time.Sleep(time.Duration(i) * time.Millisecond / 2) // where in the start the kill comes
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil && !fault.Is(err, fault.Engine) {
			t.Errorf("killed after %d half ms: %v, want engine_error or success", i, err)
		}
		if _, err := b.Engine.Start(ctx, b.ID); err != nil && !fault.Is(err, fault.InvalidState) { // it runs already
			t.Fatalf("killed after %d half ms, then started: %v", i, err)
		}
		if out := b.Sh(t, "echo lives"); out != "lives\n" {
			t.Fatalf("killed after %d half ms: the box answers %q", i, out)
		}
		if inits := initsOf(t, b.ID); len(inits) != 1 {
			t.Fatalf("killed after %d half ms: the box has the inits %v", i, inits)
		}
	}
}

// initsOf returns the processes that are the first of their box's process
// namespace, by the box's cgroups.
func initsOf(t *testing.T, id string) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		groups, _ := os.ReadFile(path) // a process may have gone
		status, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "status"))
		_, ids, _ := strings.Cut(string(status), "\nNSpid:\t")
		ids, _, _ = strings.Cut(ids, "\n")
		if strings.Contains(string(groups), id) && strings.HasSuffix(ids, "\t1") && !strings.Contains(string(status), "\tZ (zombie)") {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

// A stop that the death of the shim interrupts is a stop.
func TestShimKilledInStop(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	e, err := core.New(core.Config{Engine: b.Engine}).Get(t.Context(), b.ID)
	if err != nil {
		t.Fatal(err)
	}
	x, err := e.Exec(t.Context(), options.Exec{Cmd: []string{"sh", "-c", "trap '' TERM; echo set; while :; do sleep 1; done"}})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	trapped, done := make(chan struct{}), make(chan error)
	var reading sync.WaitGroup
	defer reading.Wait() // the exec is closed when nobody reads it
	reading.Go(func() {
		_, _ = x.Stream(t.Context(), make([]byte, core.OutputBuffer), func(bool, []byte) error {
			close(trapped)
			return nil
		})
	})
	<-trapped
	go func() {
		_, err := b.Engine.Stop(t.Context(), b.ID, 2*time.Second)
		done <- err
	}()
	boxes.Await(t, "the stop to be noted", func() bool {
		rec, err := record.Open(b.Home).Get(b.ID)
		return err == nil && rec.Stopping
	})
	if err := syscall.Kill(boxes.ShimPID(t, b.Home), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil { // asked of the next shim, which finishes the stop
		t.Error(err)
	}
	if err := b.Engine.Flush(t.Context()); err != nil { // starts the next shim
		t.Fatal(err)
	}
	if rec := boxes.AwaitState(t, b.Engine, b.ID, api.Stopped); rec.Reason != "stopped" || rec.Error != nil {
		t.Errorf("the box ended as %+v", rec)
	}
}

// short runs a test again in a process that may have few descriptors.
func short(t *testing.T, limit uint64, home, box string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "SHORT_HOME="+home, "SHORT_BOX="+box)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	lower := unix.Rlimit{Cur: limit, Max: limit}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_NOFILE, &lower, nil); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the process that is short of descriptors: %v\n%s", err, out.String())
	}
}

// A shim that can't watch all boxes says so and ends; the boxes live on.
func TestShimShortOfDescriptors(t *testing.T) {
	if home := os.Getenv("SHORT_HOME"); home != "" {
		err := boxes.Open(t, home).Flush(t.Context()) // starts the shim
		if !fault.Is(err, fault.ResourceExhausted) || !strings.Contains(err.Error(), "ulimit -n") {
			t.Errorf("got %v, want resource_exhausted and what to do", err)
		}
		return
	}
	t.Parallel()
	b := boxes.New(t)
	all := []string{b.ID}
	for range 30 {
		id := boxes.NextID(b.Home)
		if _, err := boxes.Create(t.Context(), b.Engine, id, b.Root); err != nil {
			t.Fatal(err)
		}
		all = append(all, id)
	}
	pid := boxes.ShimPID(t, b.Home)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	short(t, 32, b.Home, b.ID)
	for _, id := range all {
		if out, _ := boxes.Output(t, b.Engine, id, options.Exec{Cmd: []string{"echo", "lives"}}); out != "lives\n" {
			t.Errorf("box %s answers %q", id, out)
		}
		if id != b.ID {
			if err := b.Engine.Remove(t.Context(), id, true); err != nil {
				t.Error(err)
			}
		}
	}
	b.Lives(t)
}

// A create whose shim is out of descriptors, at whichever step, is told so and
// leaves nothing once there are descriptors again.
func TestCreateShortOfDescriptors(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	pid := boxes.ShimPID(t, b.Home)
	for free, made := uint64(0), false; !made; free++ {
		id := boxes.NextID(b.Home)
		enough := boxes.Descriptors(t, pid, open(t, pid)+free)
		_, err := boxes.Create(t.Context(), b.Engine, id, b.Root)
		enough()
		if made = err == nil; !made && !fault.Is(err, fault.ResourceExhausted) {
			t.Fatalf("with %d descriptors: %v", free, err)
		}
		if made {
			if err := b.Engine.Remove(t.Context(), id, true); err != nil {
				t.Fatal(err)
			}
		}
		boxes.Await(t, "the box and its groups to be gone", func() bool {
			_, err := b.Engine.Get(t.Context(), id)
			groups, _ := filepath.Glob("/sys/fs/cgroup/*/sandbox/" + id)
			return fault.Is(err, fault.BoxNotFound) && len(groups) == 0
		})
	}
	b.Lives(t)
}

// A stop whose shim is out of descriptors is told so, and kills nothing.
func TestStopShortOfDescriptors(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	pid := boxes.ShimPID(t, b.Home)
	enough := boxes.Descriptors(t, pid, 3)
	if _, err := b.Engine.Stop(t.Context(), b.ID, time.Minute); !fault.Is(err, fault.ResourceExhausted) {
		t.Errorf("got %v, want resource_exhausted", err)
	}
	enough()
	b.Lives(t)
	if _, err := b.Engine.Stop(t.Context(), b.ID, time.Minute); err != nil {
		t.Error(err)
	}
}

// A start takes away what a stop that was short of descriptors has left.
func TestStartAfterUncleanStop(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	if _, err := b.Engine.Stop(t.Context(), b.ID, time.Second); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(b.Home, "engine", "state", b.ID, "left"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Engine.Start(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	if out, _ := boxes.Output(t, b.Engine, b.ID, options.Exec{Cmd: []string{"echo", "alive"}}); out != "alive\n" {
		t.Errorf("the box says %q", out)
	}
}

// A box whose end was noted as its time came, and not begun, since the shim was short of
// descriptors or died, is given more time. It is kept when it is stopped: that is not its
// expiry.
func TestExpiryNotBegun(t *testing.T) {
	t.Parallel()
	for name, expire := range map[string]func(*testing.T, *boxes.Box) (mend func()){
		"short of descriptors": expireShort,
		"killed": func(t *testing.T, b *boxes.Box) func() {
			rec, err := record.Open(b.Home).Get(b.ID)
			rec.Expired = true
			err = errors.Join(err, record.Open(b.Home).Put(b.ID, rec, true))
			if err = errors.Join(err, syscall.Kill(boxes.ShimPID(t, b.Home), syscall.SIGKILL)); err != nil {
				t.Fatal(err)
			}
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hour, remove := 3600, options.ExpiryRemove
			b := boxes.New(t, func(o *options.Box) { o.TTLSeconds, o.OnExpiry = hour, options.ExpiryStop })
			mend := expire(t, b)
			if _, err := b.Engine.Update(t.Context(), b.ID, options.Update{TTLSeconds: &hour, OnExpiry: &remove}); err != nil {
				t.Error(err)
			}
			mend()
			if rec, err := b.Engine.Stop(t.Context(), b.ID, time.Second); err != nil || rec.Reason != "stopped" {
				t.Errorf("a stop: %+v, %v", rec, err)
			}
			if _, err := b.Engine.Start(t.Context(), b.ID); err != nil {
				t.Error("the box was not kept: ", err)
			}
		})
	}
}

// expireShort has the time of a box come while the shim can't end the box for want of
// descriptors, until it has tried twice, with a second between. Calling enough returns the
// descriptors to it. What the shim opens for a moment of its own can be counted, or keep it
// from the update: then it is tried once more.
func expireShort(t *testing.T, b *boxes.Box) (enough func()) {
	t.Helper()
	runs := func() bool {
		rec, err := b.Engine.Get(t.Context(), b.ID)
		return err == nil && rec.Status == api.Running
	}
	const refusal = "end a box whose time has come"
	for second, hour := 1, 3600; ; {
		before := len(logged(t, b.Home, refusal))
		enough = boxes.OneDescriptor(t, boxes.ShimPID(t, b.Home))
		_, err := b.Engine.Update(t.Context(), b.ID, options.Update{TTLSeconds: &second})
		if err != nil && !fault.Is(err, fault.ResourceExhausted) {
			t.Fatal(err)
		}
		var refused []time.Time
		boxes.Await(t, "the end to be refused twice", func() bool {
			refused = logged(t, b.Home, refusal)[before:]
			return err != nil || len(refused) >= 2 || !runs()
		})
		if len(refused) >= 2 && runs() {
			if gap := refused[1].Sub(refused[0]); gap < 900*time.Millisecond { // the clock may be slewed meanwhile
				t.Errorf("the end was tried again after %s", gap)
			}
			return enough
		}
		enough()
		boxes.Await(t, "the box to run again", func() bool {
			_, err := b.Engine.Update(t.Context(), b.ID, options.Update{TTLSeconds: &hour})
			if err == nil {
				_, err = b.Engine.Start(t.Context(), b.ID)
			}
			return err == nil || fault.Is(err, fault.InvalidState) // it runs
		})
	}
}

// logged returns when the shim of a home has logged a message.
func logged(t *testing.T, home, message string) (times []time.Time) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(home, "engine", wire.ShimLog))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if !strings.Contains(line, message) {
			continue
		}
		stamp, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
		at, err := time.Parse(time.RFC3339, stamp)
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, at)
	}
	return times
}

// The next shim goes on with a removal that a shim had begun when it died.
func TestRemovalCutOff(t *testing.T) {
	t.Parallel()
	for name, running := range map[string]bool{"of a box that runs": true, "of one that is stopped": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			e := boxes.Open(t, home)
			id := boxes.NextID(home)
			if _, err := boxes.Create(t.Context(), e, id, rootfs.Busybox(t)); err != nil {
				t.Fatal(err)
			}
			if !running {
				if _, err := e.Stop(t.Context(), id, 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := syscall.Kill(boxes.ShimPID(t, home), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			rec, err := record.Open(home).Get(id)
			rec.Removing, rec.Stopping = true, running
			if err = errors.Join(err, record.Open(home).Put(id, rec, true)); err != nil {
				t.Fatal(err)
			}
			if err := e.Flush(t.Context()); err != nil { // starts the next shim
				t.Fatal(err)
			}
			boxes.Await(t, "the box to be removed", func() bool {
				_, err := e.Get(t.Context(), id)
				return fault.Is(err, fault.BoxNotFound)
			})
			if _, err := os.Stat(record.Dir(home, id)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("its directory: %v", err)
			}
		})
	}
}

// A box whose removal has failed has a part of its disk alone: nobody uses that, and the
// record says so, for the next shim.
func TestRemovalFails(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(context.Context, *boxes.Box) error{
		"by a remove": func(ctx context.Context, b *boxes.Box) error { return b.Engine.Remove(ctx, b.ID, false) },
		"by a sweep": func(ctx context.Context, b *boxes.Box) error {
			_, err := b.Engine.Sweep(ctx, 0)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, b := t.Context(), boxes.New(t)
			if _, err := b.Engine.Stop(ctx, b.ID, 0); err != nil {
				t.Fatal(err)
			}
			thaw := frozen.Dir(t, record.Dir(b.Home, b.ID))
			if err := remove(ctx, b); !fault.Is(err, fault.Storage) {
				t.Errorf("a removal: %v, want storage_error", err)
			}
			thaw()
			_, started := b.Engine.Start(ctx, b.ID)
			_, taken := b.Engine.Snapshot(ctx, b.ID, strings.Repeat("0", 64))
			_, back := b.Engine.Rollback(ctx, b.ID, nil)
			for what, err := range map[string]error{"start": started, "snapshot": taken, "rollback": back} {
				if !fault.Is(err, fault.InvalidState) || !strings.Contains(err.Error(), "remove it again") {
					t.Errorf("a %s: %v, want invalid_state", what, err)
				}
			}
			if rec, err := record.Open(b.Home).Get(b.ID); err != nil || !rec.Removing {
				t.Errorf("its record: %+v, %v", rec, err)
			}
		})
	}
}

// open returns how many descriptors a process has.
func open(t *testing.T, pid int) uint64 {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return uint64(len(entries))
}

// A program that is out of descriptors is told so, and not that its boxes end. A command
// that was started for it all the same ends.
func TestExecShortOfDescriptors(t *testing.T) {
	if home := os.Getenv("SHORT_HOME"); home != "" {
		e := boxes.Open(t, home)
		var taken []*os.File
		for {
			f, err := os.Open(os.DevNull)
			if err != nil {
				break
			}
			taken = append(taken, f)
		}
		for free := 0; ; free++ { // descriptors: the exec is short of one at each of its steps
			p, err := e.Exec(t.Context(), os.Getenv("SHORT_BOX"), options.Exec{Cmd: []string{"sleep", "600"}})
			if err == nil && free > 0 {
				_, _ = p.Cancel(t.Context(), 0), p.Release()
				break
			}
			if !fault.Is(err, fault.ResourceExhausted) || len(taken) == 0 {
				t.Fatalf("with %d descriptors: %v, want resource_exhausted", free, err)
			}
			_ = taken[0].Close()
			taken = taken[1:]
		}
		for _, f := range taken {
			_ = f.Close()
		}
		return
	}
	t.Parallel()
	b := boxes.New(t)
	short(t, 64, b.Home, b.ID)
	boxes.Await(t, "the end of all commands", func() bool { return running(t, b) == 0 })
	b.Lives(t)
}

// A damaged record hides no other box and blocks no new one. Its box is shown
// as failed, and goes with all that it had.
func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	damaged, err := boxes.Create(t.Context(), b.Engine, boxes.NextID(b.Home), b.Root)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(b.Home, "records", damaged.ID+".json")
	if err := os.Truncate(file, 20); err != nil {
		t.Fatal(err)
	}
	shown := func(when string) {
		t.Helper()
		rec, err := b.Engine.Get(t.Context(), damaged.ID)
		if err != nil || rec.Status != api.Failed || rec.Error == nil || rec.Error.Code != fault.Storage {
			t.Errorf("%s: shown as %+v, %v", when, rec, err)
		}
		if recs, err := b.Engine.List(t.Context()); err != nil || len(recs) != 2 {
			t.Errorf("%s: listed %v, %v", when, recs, err)
		}
	}
	shown("before a shim has seen it")
	if err := syscall.Kill(boxes.ShimPID(t, b.Home), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := b.Engine.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	shown("set aside")
	if aside, err := filepath.Glob(file[:len(file)-len(".json")] + "*.damaged"); err != nil || len(aside) != 1 {
		t.Errorf("set aside: %v, %v", aside, err)
	}
	if _, err := b.Engine.Start(t.Context(), damaged.ID); !fault.Is(err, fault.InvalidState) {
		t.Errorf("start: %v, want invalid_state", err)
	}
	if err := b.Engine.Remove(t.Context(), damaged.ID, false); err != nil {
		t.Error(err)
	}
	if inits := initsOf(t, damaged.ID); len(inits) != 0 {
		t.Errorf("the inits %v are left", inits)
	}
	b.Lives(t)
}

// The record of a box that ends with its program is not synced, so a power cut may
// leave it empty: the box is removed like all others that the cut has ended. That
// of a box that stays is not taken for one.
func TestEmptyRecord(t *testing.T) {
	t.Parallel()
	for name, passing := range map[string]bool{"passing": true, "staying": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := boxes.New(t)
			req := boxes.Request(boxes.NextID(b.Home), b.Root)
			req.Options.AutoRemove = passing
			rec, err := b.Engine.Create(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(filepath.Join(b.Home, "records", rec.ID+".json"), 0); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(boxes.ShimPID(t, b.Home), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if err := b.Engine.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, err := b.Engine.Get(t.Context(), rec.ID); passing != fault.Is(err, fault.BoxNotFound) || !passing && got.Status != api.Failed {
				t.Errorf("the box is %+v, %v", got, err)
			}
			if _, err := os.Stat(filepath.Join(b.Home, "boxes", rec.ID)); passing != errors.Is(err, os.ErrNotExist) {
				t.Errorf("its directory: %v", err)
			}
			if inits := initsOf(t, rec.ID); len(inits) != 0 {
				t.Errorf("the inits %v are left", inits)
			}
			b.Lives(t)
		})
	}
}

// A shim that knows what a record held writes it anew when it is damaged.
func TestDamagedRecordIsMended(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	if err := os.Truncate(filepath.Join(b.Home, "records", b.ID+".json"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Engine.Start(t.Context(), b.ID); !fault.Is(err, fault.InvalidState) { // it runs
		t.Errorf("start: %v, want invalid_state", err)
	}
	b.Lives(t)
}

// A start on a full disk says which one is full, and of what.
func TestDiskFullAtStart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		data, want string
	}{
		"space":  {"size=8m,mode=755", "no space"},
		"inodes": {"nr_inodes=200,mode=755", "no inodes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := mounted(t, "tmpfs", tt.data, 0)
			e := boxes.Open(t, home)
			id := boxes.NextID(home)
			if _, err := boxes.Create(t.Context(), e, id, rootfs.Busybox(t)); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Stop(t.Context(), id, time.Second); err != nil {
				t.Fatal(err)
			}
			fill(t, home)
			if _, err := e.Start(t.Context(), id); !fault.Is(err, fault.Storage) || !strings.Contains(err.Error(), tt.want) && !strings.Contains(err.Error(), "disk is full") {
				t.Errorf("got %v, want storage_error with %q", err, tt.want)
			}
			if err := e.Remove(t.Context(), id, true); err != nil {
				t.Error(err)
			}
		})
	}
}

// A start whose writable layer the kernel made read-only, as it does on a disk that
// is full just then, blames the disk and not its file system. The next one works.
func TestLayerReadOnly(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	if _, err := b.Engine.Stop(t.Context(), b.ID, time.Second); err != nil {
		t.Fatal(err)
	}
	thaw := frozen.Dir(t, filepath.Join(record.Dir(b.Home, b.ID), "work"))
	if _, err := b.Engine.Start(t.Context(), b.ID); !fault.Is(err, fault.Storage) {
		t.Errorf("got %v, want storage_error", err)
	}
	thaw()
	if _, err := b.Engine.Start(t.Context(), b.ID); err != nil {
		t.Error(err)
	}
}

// fill takes all bytes and all names of a file system.
func fill(t *testing.T, dir string) {
	t.Helper()
	for i := 0; ; i++ {
		err := os.WriteFile(filepath.Join(dir, "filler-"+strings.Repeat("x", i%200)+string(rune('a'+i/200))), make([]byte, 256<<10), 0o600)
		if errors.Is(err, unix.ENOSPC) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The processes and groups of a box that neither a record nor a directory names
// are found and ended.
func TestNamedByNothing(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	lost, err := boxes.Create(t.Context(), b.Engine, boxes.NextID(b.Home), b.Root)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(boxes.ShimPID(t, b.Home), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.Remove(filepath.Join(b.Home, "records", lost.ID+".json")), os.RemoveAll(record.Dir(b.Home, lost.ID)),
		os.RemoveAll(filepath.Join(b.Home, "engine", "state", lost.ID)))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Engine.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if inits := initsOf(t, lost.ID); len(inits) != 0 {
		t.Errorf("the inits %v are left", inits)
	}
	if groups, _ := filepath.Glob("/sys/fs/cgroup/*/sandbox/" + lost.ID); len(groups) != 0 {
		t.Errorf("the groups %v are left", groups)
	}
	b.Lives(t)
}
