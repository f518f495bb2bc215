package hostpath

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, unix.Symlink("loop", filepath.Join(dir, "loop")))
	must(t, unix.Symlink("/proc/self", filepath.Join(dir, "out")))
	long := dir + "/" + strings.Repeat("é", 60) // may be cut within a letter
	for path, want := range map[string]string{
		dir + "/none": dir + "/none names no file or directory of the host",
		dir + "/out":  dir + "/out leads out of the directory " + dir,
		"/etc":        "/etc leads out of the directory " + dir,
		long:          strings.ToValidUTF8(long[:100], "") + "... names no file or directory of the host",
	} {
		_, err := Open(dir, path)
		if got := Explain(err, dir, path); err == nil || got != want {
			t.Errorf("%v is explained as %q, want %q", err, got, want)
		}
	}
	loop := dir + "/loop"
	_, err := Open("", loop)
	if got, want := Explain(err, "", loop), loop+" can't be opened: too many levels of symbolic links"; got != want {
		t.Errorf("%v is explained as %q, want %q", err, got, want)
	}
	if got, want := Closed("/a", "/a/b"), "/a contains /a/b, or is in it, which is closed to boxes"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
