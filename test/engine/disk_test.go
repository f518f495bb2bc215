package engine_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/engine"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/rootfs"
)

// diskOf returns the path of a box's disk, and what it takes of the host in MiB.
func diskOf(t *testing.T, home, box string) (string, int64) {
	t.Helper()
	path := filepath.Join(home, "boxes", box, "disk")
	st, err := os.Stat(path)
	must(t, err)
	return path, st.Sys().(*syscall.Stat_t).Blocks * 512 >> 20
}

// attachedTo names the loop devices of files below a directory.
func attachedTo(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil && strings.HasPrefix(string(b), dir+"/") {
			found = append(found, name)
		}
	}
	return found
}

func oneGB(o *options.Box) { o.DiskSizeGB = 1 }

func TestDisk(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.Open(t, home)
	box, err := boxWith(t, e, rootfs.Busybox(t), oneGB)
	must(t, err)
	if _, used := diskOf(t, home, box); used > 16 {
		t.Errorf("an empty disk takes %d MiB of the host", used)
	}
	blocks, err := strconv.Atoi(strings.TrimSpace(sh(t, e, box, "df -k / | awk 'NR==2 {print $2}'")))
	if err != nil || blocks < 900<<10 || blocks > 1<<20 {
		t.Errorf("df tells of %d KiB, %v", blocks, err)
	}
	if got := sh(t, e, box, "dd if=/dev/zero of=/big bs=1M count=2000"); !strings.Contains(got, "No space left on device") {
		t.Errorf("a disk that is full: %q", got)
	}
	if got := sh(t, e, box, "df -m / | awk 'NR==2 {print $4}'"); got != "0\n" && got != "1\n" {
		t.Errorf("a disk that is full has %q MiB left", got)
	}
	if got := sh(t, e, box, "rm /big; echo kept >/file; sync; stat -c %u:%g / /file"); got != "0:0\n0:0\n" {
		t.Errorf("got %q", got)
	}
	// The kernel gives what was removed back to the host a little later,
	// as long as the box runs.
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if _, used := diskOf(t, home, box); used <= 32 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%d MiB of the host are taken by what was removed", used)
		}
	}
	restart(t, e, box)
	if got := sh(t, e, box, "cat /file"); got != "kept\n" {
		t.Errorf("after a stop: %q", got)
	}
	must(t, e.Remove(t.Context(), box, true))
	if left := attachedTo(t, home); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func restart(t *testing.T, e *engine.Client, box string) {
	t.Helper()
	if _, err := e.Stop(t.Context(), box, time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Start(t.Context(), box); err != nil {
		t.Fatal(err)
	}
}

// The box is killed while it writes. What was written and synced before is
// there, and one loop device has the disk, however quick the next start comes.
func TestDiskAfterCrash(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.Open(t, home)
	box, err := boxWith(t, e, rootfs.Busybox(t), oneGB)
	must(t, err)
	for i := range 5 {
		n := strconv.Itoa(i)
		sh(t, e, box, "echo "+n+" >/kept"+n+"; sync; (while :; do echo x >>/log; done) & sleep 0.05")
		rec, err := e.Get(t.Context(), box)
		must(t, err)
		must(t, syscall.Kill(rec.PID, syscall.SIGKILL))
		for err = fault.New(fault.InvalidState, ""); fault.Is(err, fault.InvalidState); {
			_, err = e.Start(t.Context(), box) // until the shim has noticed
		}
		must(t, err)
		if got := sh(t, e, box, "cat /kept"+n+"; echo more >/more"); got != n+"\n" {
			t.Fatalf("after crash %d: %q", i, got)
		}
		if left := attachedTo(t, home); len(left) != 1 {
			t.Errorf("loop devices of one disk: %v", left)
		}
	}
}

// The shim is killed: its boxes keep their disks, and nothing else is left.
func TestDiskShimKilled(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.Open(t, home)
	root := rootfs.Busybox(t)
	box, err := boxWith(t, e, root, oneGB)
	must(t, err)
	pid := boxes.ShimPID(t, home)
	done := make(chan error)
	go func() {
		_, err := boxWith(t, e, root, oneGB)
		done <- err
	}()
	time.Sleep(10 * time.Millisecond) // anywhere in the create
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	<-done
	if got := sh(t, e, box, "echo x >/file && cat /file"); got != "x\n" {
		t.Errorf("got %q", got)
	}
	recs, err := e.List(t.Context())
	must(t, err)
	for _, rec := range recs {
		must(t, e.Remove(t.Context(), rec.ID, true))
	}
	if left := attachedTo(t, home); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestDiskTooLarge(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	_, err := boxWith(t, boxes.Open(t, home), rootfs.Busybox(t), func(o *options.Box) { o.DiskSizeGB = options.MaxDiskSizeGB })
	if !fault.Is(err, fault.Unsupported) {
		t.Errorf("got %v, want unsupported", err)
	}
	if entries, _ := os.ReadDir(filepath.Join(home, "boxes")); len(entries) > 0 {
		t.Errorf("left: %v", entries)
	}
}

// A shim that is killed while it copies a disk leaves the disk's file system standing still.
// It goes on before anybody can remove the box, or it would outlive that and keep the disk.
func TestDiskLeftStanding(t *testing.T) {
	t.Parallel()
	for name, dies := range map[string]bool{"of a box that lives": false, "of a box that has died": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			e := boxes.Open(t, home)
			box, err := boxWith(t, e, rootfs.Busybox(t), oneGB)
			must(t, err)
			rec, err := e.Pause(t.Context(), box, false)
			must(t, err)
			standStill(t, attachedTo(t, home)[0])
			kill(t, home)
			if dies {
				must(t, syscall.Kill(rec.PID, syscall.SIGKILL))
			} else if _, err := e.Resume(t.Context(), box); err != nil || sh(t, e, box, "echo x >/file; sync; cat /file") != "x\n" {
				t.Errorf("the box does not go on: %v", err)
			}
			must(t, e.Remove(t.Context(), box, true))
			boxes.Await(t, "nothing of the disk", func() bool { return len(attachedTo(t, home)) == 0 })
		})
	}
}

// standStill has the file system on a loop device, which attachedTo has named, stand still.
func standStill(t *testing.T, of string) {
	t.Helper()
	place := t.TempDir()
	must(t, unix.Mount(filepath.Join("/dev", strings.Split(of, "/")[3]), place, "ext4", 0, ""))
	defer func() { must(t, unix.Unmount(place, unix.MNT_DETACH)) }()
	root, err := os.Open(place)
	must(t, err)
	defer root.Close()
	const fifreeze = 0xc0045877 // of linux/fs.h
	must(t, unix.IoctlSetInt(int(root.Fd()), fifreeze, 0))
}
