package backend

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A file has its name when it is whole: while it is written, and after a failure, the
// directory is as it was.
func TestReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "image.tar")
	names := func(want int) {
		t.Helper()
		if all, err := os.ReadDir(dir); err != nil || len(all) != want {
			t.Errorf("the directory has %v, %v", all, err)
		}
	}
	write := func(text string, there int, failure error) {
		t.Helper()
		err := replace(path, func(f *os.File) error {
			names(there)
			_, err := f.WriteString(text)
			return errors.Join(err, failure)
		})
		if !errors.Is(err, failure) {
			t.Errorf("replace: %v", err)
		}
	}
	broken := errors.New("broken off")
	write("half", 0, broken)
	names(0)
	write("first", 0, nil)
	names(1)
	write("half", 1, broken)
	write("second", 1, nil)
	names(1)
	if text, err := os.ReadFile(path); err != nil || string(text) != "second" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o644 {
		t.Errorf("the file is %v, %v", st.Mode(), err)
	}
}
