package engine

import (
	"os"
	"path/filepath"
	"strings"

	"sandbox/core/fault"
)

// Names of the helper programs.
const (
	shimName = "sandbox-shim"
	initName = "sandbox-init"
)

// programs are the paths of the helpers.
type programs struct{ shim, init string }

// findHelpers looks where it was told to, and only there; else beside the
// library or program in use, as it is built and as it is installed; else in PATH.
func findHelpers(dir, beside string) (programs, error) {
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
		p := programs{filepath.Join(place, shimName), filepath.Join(place, initName)}
		if executable(p.shim) && executable(p.init) {
			return p, nil
		}
	}
	return programs{}, fault.New(fault.Engine, "no %s with %s beside it in %s: set SANDBOX_HELPER_DIR to their folder",
		shimName, initName, strings.Join(places, ", "))
}

func executable(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}

// Helper gives the path of the helper program that this home would start.
func (c *Client) Helper() string { return c.helper.programs.shim }
