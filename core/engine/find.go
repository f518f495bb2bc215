package engine

import (
	"os"
	"os/exec"
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
	places := []string{dir}
	if dir == "" {
		places = nil
		if beside != "" {
			places = []string{beside, filepath.Join(beside, "..", "libexec", "sandbox")}
		}
		if path, err := exec.LookPath(shimName); err == nil {
			places = append(places, filepath.Dir(path))
		}
	}
	for _, place := range places {
		p := programs{filepath.Join(place, shimName), filepath.Join(place, initName)}
		if executable(p.shim) && executable(p.init) {
			return p, nil
		}
	}
	return programs{}, fault.New(fault.Engine, "the helpers %s and %s are not in %s, nor in PATH: "+
		"set SANDBOX_HELPER_DIR to their folder", shimName, initName, strings.Join(append(places, "(no further place)"), ", "))
}

// Helper gives the path of the helper program that this home would start.
func (c *Client) Helper() string { return c.helper.programs.shim }

func executable(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}
