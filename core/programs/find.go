// Package programs finds the programs of this project that are started by others.
package programs

import (
	"os"
	"path/filepath"
	"strings"

	"sandbox/core/fault"
)

// Find returns the directory that has all the named programs. It looks in dir, and
// only there, when dir is given; else beside the library or program in use, as
// it is built and as it is installed, and then in PATH. Errors: Engine, which
// names every place.
func Find(dir, beside string, names ...string) (string, error) {
	var places []string
	switch {
	case dir != "":
		places = []string{dir}
	case beside != "":
		places = []string{beside, filepath.Join(beside, "..", "libexec", "sandbox")}
	}
	if dir == "" {
		places = append(places, filepath.SplitList(os.Getenv("PATH"))...)
	}
	for _, place := range places {
		if holds(place, names) {
			return place, nil
		}
	}
	return "", fault.New(fault.Engine, "no %s in %s: set SANDBOX_HELPER_DIR to their directory",
		strings.Join(names, " with "), strings.Join(places, ", "))
}

func holds(dir string, names []string) bool {
	for _, name := range names {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil || !st.Mode().IsRegular() || st.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}
