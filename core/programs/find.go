// Package programs finds those programs of this project that other programs
// start.
package programs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sandbox/core/fault"
)

// Find returns a directory that has all the named programs. If dir is not "",
// it looks only there. Otherwise it looks near the library or program in use,
// and then near each directory of PATH. Errors: Engine, which names every place
// that was tried.
func Find(dir, beside string, names ...string) (string, error) {
	places := []string{dir}
	if dir == "" {
		places = near(append([]string{beside}, filepath.SplitList(os.Getenv("PATH"))...))
	}
	for _, place := range places {
		if holds(place, names) {
			return place, nil
		}
	}
	return "", fault.New(fault.Engine, "no %s in %s: set SANDBOX_HELPER_DIR to their directory",
		strings.Join(names, " with "), strings.Join(places, ", "))
}

// near returns each of dirs, where a build puts the programs, and the directory
// that an installation puts them into if the library or the command line is in
// dirs. Each is there once, and "" is left out.
func near(dirs []string) (places []string) {
	for _, dir := range dirs {
		for _, place := range []string{dir, filepath.Join(dir, "..", "libexec", "sandbox")} {
			if dir != "" && !slices.Contains(places, place) {
				places = append(places, place)
			}
		}
	}
	return places
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
