package guest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
)

// TestRefusedInPause has init refuse to work on files, as it does while the box is paused:
// it keeps neither a descriptor of the group that the work would have had nor the group.
func TestRefusedInPause(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	g := newGuest(t)
	g.tree, g.paused = unified(fd), true // groups of cgroup2 are made as directories are
	for _, asked := range [][]byte{frame(wire.TypeFiles, `{}`), frame(wire.TypeTransfer, `{"in":true}`), frame(wire.TypeStart, `{"cmd":["true"]}`)} {
		if got := exchange(t, g, asked); len(got) != 1 || got[0].Type != wire.TypeError || !strings.Contains(string(got[0].Body), errPaused.Error()) {
			t.Errorf("%q: %v", asked, got)
		}
	}
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range open {
		if leads, _ := os.Readlink(name); strings.HasPrefix(leads, dir+"/") { // fails for one that was closed meanwhile
			t.Errorf("%s leads to %s", name, leads)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestLatePause has init come to a pause when the shim has given up waiting for it, hung up
// and had it resumed: the box goes on. A resume that is late is done all the same.
func TestLatePause(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		late   wire.Type
		before bool
	}{"pause": {wire.TypePause, false}, "resume": {wire.TypeResume, true}} {
		g := newGuest(t)
		g.paused = c.before
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		shim := wire.NewConn(p[1], "shim")
		if err := errors.Join(shim.Send(c.late, nil), shim.Close()); err != nil {
			t.Fatal(err)
		}
		g.handle(wire.NewConn(p[0], "init"))
		if g.paused {
			t.Errorf("paused after a late %s", name)
		}
	}
}
