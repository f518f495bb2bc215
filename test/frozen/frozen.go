// Package frozen makes directories that refuse every change, for tests of what a
// file system that has become read-only does to those who write to it.
package frozen

import (
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// immutable is FS_IMMUTABLE_FL of linux/fs.h.
const immutable = 0x10

// Dir makes a directory refuse new, renamed and removed names. Calling thaw, or
// the end of the test, makes it writable again; thaw may be called twice. Files
// that are in the directory can still be written. It needs root, and a file
// system that has the immutable flag, such as ext4.
func Dir(t testing.TB, dir string) (thaw func()) {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	set := func(flags int) {
		t.Helper()
		if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags); err != nil {
			t.Fatal("needs root and a file system with the immutable flag: ", err)
		}
	}
	set(immutable)
	thaw = sync.OnceFunc(func() {
		set(0)
		_ = f.Close()
	})
	t.Cleanup(thaw)
	return thaw
}
