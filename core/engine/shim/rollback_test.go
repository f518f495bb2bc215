package shim

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDropDisk gives up two disks of a box, the second one while the first is still there, as
// a large one is for long. Both are moved away whole, and swept.
func TestDropDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	seen := map[string]string{}
	for _, content := range []string{"first", "second"} {
		if err := makeDirs(filepath.Join(dir, upperDir), filepath.Join(dir, "work")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, upperDir, "file"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		was, err := dropDisk(dir)
		if err != nil {
			t.Fatal(err)
		}
		seen[was] = content
	}
	for was, want := range seen {
		got, err := os.ReadFile(filepath.Join(was, upperDir, "file"))
		if err != nil || string(got) != want {
			t.Errorf("a disk that was given up has %q, %v, want %q", got, err, want)
		}
	}
	if err := removeDropped(dir); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
