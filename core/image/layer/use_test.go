package layer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a box takes up is what its files do, each once, and nothing that its
// links lead to.
func TestDiskUse(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "big")
	deep := filepath.Join(dir, "upper", strings.Repeat("d/", 100))
	err := errors.Join(
		os.MkdirAll(deep, 0o700),
		os.WriteFile(filepath.Join(deep, "file"), make([]byte, 1<<20), 0o600),
		os.Link(filepath.Join(deep, "file"), filepath.Join(dir, "again")),
		os.WriteFile(outside, make([]byte, 8<<20), 0o600),
		os.Symlink(outside, filepath.Join(dir, "link")),
		os.Symlink(filepath.Dir(outside), filepath.Join(dir, "links")),
		os.WriteFile(filepath.Join(dir, "disk"), nil, 0o600),
		os.Truncate(filepath.Join(dir, "disk"), 1<<30),
	)
	if err != nil {
		t.Fatal(err)
	}
	if use := DiskUse(dir, 1000); use.AtLeast || use.Bytes < 1<<20 || use.Bytes > 2<<20 {
		t.Errorf("a box of 1 MiB takes up %+v", use)
	}
	if use := DiskUse(dir, 10); !use.AtLeast {
		t.Errorf("of 10 files: %+v", use)
	}
	if use := DiskUse(filepath.Join(dir, "none"), 10); !use.AtLeast {
		t.Errorf("of no directory: %+v", use)
	}
}

// A directory that a link has taken the place of meanwhile is not followed.
func TestDiskUseOfReplacedDirectory(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	err := errors.Join(
		os.WriteFile(filepath.Join(outside, "big"), make([]byte, 8<<20), 0o600),
		os.Symlink(outside, filepath.Join(dir, "was")),
	)
	root, openErr := os.Open(dir)
	if err = errors.Join(err, openErr); err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	c := count{root: int(root.Fd()), most: 10}
	for _, path := range []string{"was", "was/..", "../" + filepath.Base(outside)} {
		if c.directory(path); c.files > 0 || !c.AtLeast {
			t.Errorf("%s led out of the box: %+v", path, c.Use)
		}
	}
}
