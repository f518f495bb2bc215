// Package programs finds those programs of this project that other programs
// start.
package programs

import (
	"os"
	"path/filepath"
	"strings"

	"sandbox/core/fault"
)

// Find returns a directory that has all the named programs. If dir is not "",
// it looks only there. Otherwise it looks near the library or program in use,
// both where a build puts the programs and where an installation does, and then
// in PATH. Errors: Engine, which names every place that was tried.
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
