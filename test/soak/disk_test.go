package soak_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/test/full"
)

// diskSize is what the home's disk holds: enough for all that runs at once, and
// quickly filled.
const diskSize = 768 << 20

// smallDisk makes a small ext4 file system in a file and mounts it for the time
// of the test.
func smallDisk(t *testing.T, dir string) string {
	t.Helper()
	image, home := filepath.Join(dir, "disk"), filepath.Join(dir, "home")
	must(t, os.WriteFile(image, nil, 0o600))
	must(t, os.Truncate(image, diskSize))
	must(t, os.Mkdir(home, 0o700))
	run(t, "mkfs.ext4", "-q", "-m", "0", image)
	run(t, "mount", "-o", "loop", image, home)
	t.Cleanup(func() {
		if err := unix.Unmount(home, 0); err != nil {
			t.Error("the home is in use: ", err)
			_ = unix.Unmount(home, unix.MNT_DETACH)
		}
	})
	return home
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// fill takes all the room of the home's disk, and all that comes free meanwhile,
// until stop is closed.
func (s *soak) fill(stop <-chan struct{}) (err error) {
	name := filepath.Join(s.home, "filler")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { // ext4 has the room again once it has written that down
		err = errors.Join(err, os.Remove(name), f.Truncate(0), unix.Syncfs(int(f.Fd())), f.Close())
	}()
	for {
		if err := full.Take(f); err != nil {
			return err
		}
		if !s.pause(stop) {
			return nil
		}
	}
}
