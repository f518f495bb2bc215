package layer_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/image/layer"
)

// mark sets the mark of a layer to text.
func mark(t *testing.T, dir, text string) {
	t.Helper()
	if err := unix.Setxattr(dir, "trusted.sandbox.boot", []byte(text), 0); err != nil {
		t.Fatal("needs root: ", err)
	}
}

func TestDurable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"new", "disk", "earlier", "unmarked", "tmp-made"} {
		if err := os.Mkdir(path(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path("new.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := layer.MarkNew(path("new")); err != nil {
		t.Fatal("needs root: ", err)
	}
	mark(t, path("disk"), "on disk")
	mark(t, path("earlier"), "b9f2f1a0-0000-4000-8000-000000000000")
	check := func(name string, whole, onDisk bool) {
		t.Helper()
		if layer.Whole(path(name)) != whole || layer.OnDisk(path(name)) != onDisk {
			t.Errorf("%s is whole: %v, on disk: %v; want %v, %v", name, !whole, !onDisk, whole, onDisk)
		}
	}
	check("new", true, false)
	check("disk", true, true)
	check("earlier", false, false)
	check("unmarked", false, false)
	check("missing", false, false)
	if err := layer.Flush(dir); err != nil {
		t.Fatal(err)
	}
	check("new", true, true)
	check("earlier", false, false) // Flush comes too late for a layer of an earlier boot
	check("unmarked", false, false)
	if err := layer.Sweep(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"new": true, "disk": true, "tmp-made": true, "new.json": true, "earlier": false, "unmarked": false} {
		if _, err := os.Stat(path(name)); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", name, err == nil, want)
		}
	}
	if err := errors.Join(layer.Flush(path("missing")), layer.Sweep(path("missing"))); err != nil {
		t.Error("a home without layers: ", err)
	}
}

// TestTarCantMark extracts a tar that claims to be on disk already.
func TestTarCantMark(t *testing.T) {
	t.Parallel()
	dir := unpacked(t, pack(t, attr(dir("./"), "trusted.sandbox.boot", "on disk")))
	if layer.Whole(dir) {
		t.Error("a tar set the mark")
	}
}

// TestSweepKeepsWhatIsUnknown has a layer whose mark can't be read, since it is longer than
// any. Nobody knows then that the layer is damaged.
func TestSweepKeepsWhatIsUnknown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unknown, unmarked := filepath.Join(dir, "unknown"), filepath.Join(dir, "unmarked")
	for _, path := range []string{unknown, unmarked} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	mark(t, unknown, strings.Repeat("x", 1000))
	if err := layer.Sweep(dir); !fault.Is(err, fault.Storage) {
		t.Errorf("%v, want storage_error", err)
	}
	for _, path := range []string{unknown, unmarked} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if layer.Whole(unknown) || layer.OnDisk(unknown) {
		t.Error("a layer whose mark can't be read is whole")
	}
}
