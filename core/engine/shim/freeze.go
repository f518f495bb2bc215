package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// freezing bounds how long the processes of a box may take to stand still. One that
// waits in the kernel, as for a disk, does not do so before the kernel answers.
const freezing = 5 * time.Second

// errMoving says that a process of a group does not stand still.
var errMoving = fault.New(fault.Timeout, "a process waits in the kernel, as for a disk, and did not stand still within %v: the box runs on", freezing)

// freezer returns the group of the box's commands in the hierarchy that can freeze
// it: cgroup2, also beside v1, or else the v1 freezer. All processes of the box but
// init are below it, and the box has no way out of it.
func (g groups) freezer() string {
	if dir := filepath.Join(g.unified(), execsDir); exists(filepath.Join(dir, "cgroup.freeze")) {
		return dir
	}
	return filepath.Join(g.dir("freezer"), execsDir)
}

// freeze has the processes of the box's commands stand still, and returns when all
// do. Errors: Timeout. The caller thaws them then.
func (g groups) freeze() error {
	dir := g.freezer()
	if exists(filepath.Join(dir, "cgroup.freeze")) {
		return freeze(dir, freezing)
	}
	return freezeV1(dir, freezing)
}

// thaw lets the processes of the box's commands go on. It reports no error: a group
// that has gone has none.
func (g groups) thaw() {
	dir := g.freezer()
	if write(dir, "cgroup.freeze", "0") != nil {
		_ = write(dir, "freezer.state", "THAWED")
	}
}

// asking is how long the first wait for the kernel's word on a group is. Each further one
// is twice as long.
const asking = 100 * time.Microsecond

// freeze freezes a cgroup2 group. The kernel tells when the last process stands still, but
// it tells of a group once in 10 ms at most, and so late of one that was thawed just now.
// Until then it is asked, too.
func freeze(dir string, bound time.Duration) error {
	events, err := os.Open(filepath.Join(dir, "cgroup.events"))
	if err != nil {
		return fmt.Errorf("freeze a box: %w", err)
	}
	defer events.Close()
	if err := write(dir, "cgroup.freeze", "1"); err != nil {
		return fmt.Errorf("freeze a box: %w", err)
	}
	wait := asking
	for deadline := time.Now().Add(bound); ; wait *= 2 {
		frozen, err := isFrozen(events)
		left := time.Until(deadline)
		switch {
		case frozen || err != nil:
			return err
		case left <= 0:
			return errMoving
		}
		told := []unix.PollFd{{Fd: int32(events.Fd()), Events: unix.POLLPRI}}
		timeout := unix.NsecToTimespec(int64(min(wait, left)))
		if _, err := unix.Ppoll(told, &timeout, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait until a box stands still: %w", err)
		}
	}
}

// isFrozen reads the events of a cgroup2 group. After it, the kernel tells of changes.
func isFrozen(events *os.File) (bool, error) {
	b := make([]byte, 256)
	n, err := unix.Pread(int(events.Fd()), b, 0)
	if err != nil {
		return false, fmt.Errorf("wait until a box stands still: %w", err)
	}
	return strings.Contains(string(b[:n]), "frozen 1"), nil
}

// freezeV1 freezes a group of the v1 freezer. That one tells nobody when the last
// process stands still, and wants to be asked again for those that came meanwhile.
func freezeV1(dir string, bound time.Duration) error {
	for deadline := time.Now().Add(bound); ; time.Sleep(time.Millisecond) {
		if err := write(dir, "freezer.state", "FROZEN"); err != nil {
			return fmt.Errorf("freeze a box: %w", err)
		}
		state, err := os.ReadFile(filepath.Join(dir, "freezer.state"))
		switch {
		case err != nil:
			return fmt.Errorf("freeze a box: %w", err)
		case strings.TrimSpace(string(state)) == "FROZEN":
			return nil
		case time.Now().After(deadline):
			return errMoving
		}
	}
}

// reclaimer returns what has the kernel take back the memory of the box's group, as
// much as it can: the file to write to, and the value. The file is "" where the
// kernel has none.
func (g groups) reclaimer() (file, value string) {
	const v2, v1 = "memory.reclaim", "memory.force_empty"
	if dir := g.unified(); exists(filepath.Join(dir, v2)) {
		size, _ := os.ReadFile(filepath.Join(dir, "memory.current")) // with no size there is nothing to do
		return filepath.Join(dir, v2), strings.TrimSpace(string(size))
	}
	if dir := g.dir("memory"); exists(filepath.Join(dir, v1)) {
		return filepath.Join(dir, v1), "0"
	}
	return "", ""
}

// reclaim has the kernel take back what it can of the box's memory. That is never
// all, so the kernel's own verdict says nothing.
func (g groups) reclaim() {
	if file, value := g.reclaimer(); file != "" {
		_ = write(filepath.Dir(file), filepath.Base(file), value)
	}
}
