package hostpath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// opened opens a path and returns the real path of what was opened.
func opened(t *testing.T, within, path string) (string, error) {
	t.Helper()
	f, err := Open(within, path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	must(t, err)
	return real, nil
}

func TestOpen(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	must(t, os.MkdirAll(root+"/in/deep", 0o700))
	for link, target := range map[string]string{
		"out": outside, "up": strings.Repeat("../", 30) + outside, "magic": "/proc/self/root", "loop": "loop",
		"relative": "in", "rooted": "/in", "dotdot": "in/../in/deep", "missing": "nosuch",
	} {
		must(t, os.Symlink(target, filepath.Join(root, link)))
	}
	for path, want := range map[string]string{
		"": "", "/in": "/in", "/in/deep": "/in/deep", "/relative/deep": "/in/deep", "/rooted/deep": "/in/deep", "/dotdot": "/in/deep", "/in/../in": "/in",
	} {
		if got, err := opened(t, root, root+path); err != nil || got != root+want {
			t.Errorf("%q: got %q, %v, want %q", path, got, err, want)
		}
	}
	for path, want := range map[string]error{
		root + "/out": ErrOutside, root + "/up": ErrOutside, root + "/magic": ErrOutside, root + "/magic/etc": ErrOutside, root + "/loop": ErrOutside,
		outside: ErrOutside, "/": ErrOutside, root + "x": ErrOutside, filepath.Dir(root): ErrOutside, root + "/..": ErrOutside,
		root + "/nosuch": os.ErrNotExist, root + "/in/nosuch/x": os.ErrNotExist, root + "/missing": os.ErrNotExist,
	} {
		if got, err := opened(t, root, path); !errors.Is(err, want) {
			t.Errorf("%q: got %q, %v, want %v", path, got, err, want)
		}
	}
	if got, err := opened(t, "", root+"/out"); err != nil || got != outside {
		t.Errorf("without a directory: %q, %v", got, err)
	}
}

// TestSwap replaces a directory by a link that leads out, and back, while a
// path through it is opened. What is opened must never lie outside.
func TestSwap(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	must(t, os.MkdirAll(root+"/a/b", 0o700))
	must(t, os.Mkdir(outside+"/b", 0o700))
	must(t, os.Symlink(outside, root+"/link"))
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, root+"/a", unix.AT_FDCWD, root+"/link", unix.RENAME_EXCHANGE)
			}
		}
	})
	inside := 0
	for range 5000 {
		got, err := opened(t, root, root+"/a/b")
		switch {
		case err == nil && !strings.HasPrefix(got, root):
			t.Errorf("opened %q", got)
		case err == nil:
			inside++
		}
	}
	close(stop)
	swapping.Wait()
	if inside == 0 {
		t.Error("never opened the directory: the test shows nothing")
	}
}
