package boxes

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// OneDescriptor leaves a process, which must hold none that it is about to close, one
// descriptor more than it has: a shim can write a record with that, and not reach the init
// of a box. Calling enough takes the limit back.
func OneDescriptor(t testing.TB, pid int) (enough func()) {
	t.Helper()
	return Descriptors(t, pid, lowestFree(t, pid)+1)
}

// Descriptors lets a process open no descriptor with the number most or above. Calling
// enough takes the limit back.
func Descriptors(t testing.TB, pid int, most uint64) (enough func()) {
	t.Helper()
	var usual unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &usual); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: most, Max: usual.Max}, nil); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &usual, nil); err != nil {
			t.Error(err)
		}
	}
}

// lowestFree returns the number that the next descriptor of a process will have.
func lowestFree(t testing.TB, pid int) uint64 {
	t.Helper()
	fds, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "fd"))
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, fd := range fds {
		used[fd.Name()] = true
	}
	n := uint64(0)
	for used[strconv.FormatUint(n, 10)] {
		n++
	}
	return n
}
