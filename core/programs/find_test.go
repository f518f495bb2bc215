package programs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandbox/core/fault"
	"sandbox/core/programs"
)

// place puts a program called name into a directory.
func place(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) { //nolint:paralleltest // it sets PATH
	for name, at := range map[string]string{
		"beside the library":             "lib",
		"where the library is installed": "libexec/sandbox",
		"in PATH":                        "usr/bin",
		"where PATH's command line is":   "usr/libexec/sandbox",
		"in the directory that is named": "named",
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			t.Setenv("PATH", filepath.Join(top, "usr/bin")+":"+filepath.Join(top, "usr/bin"))
			named := ""
			if at == "named" {
				named = filepath.Join(top, at)
			}
			_, err := programs.Find(named, filepath.Join(top, "lib"), "one", "two")
			if !fault.Is(err, fault.Engine) || !strings.Contains(err.Error(), filepath.Join(top, at)) {
				t.Errorf("%v does not name %s", err, at)
			}
			if err != nil && strings.Count(err.Error(), filepath.Join(top, "usr/bin")) > 1 {
				t.Errorf("%v names a place twice", err)
			}
			place(t, filepath.Join(top, at), "one")
			if dir, err := programs.Find(named, filepath.Join(top, "lib"), "one", "two"); err == nil {
				t.Errorf("found in %s without the second program", dir)
			}
			place(t, filepath.Join(top, at), "two")
			if dir, err := programs.Find(named, filepath.Join(top, "lib"), "one", "two"); err != nil || dir != filepath.Join(top, at) {
				t.Errorf("got %s, %v", dir, err)
			}
		})
	}
}
