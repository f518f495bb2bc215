// Package programs tells tests where the programs are that make build has
// built: the shim, the init, the log engine's child, the command line.
package programs

import (
	"os"
	"path/filepath"
)

// Dir returns the directory of the programs: the one that SANDBOX_HELPER_DIR
// names, else build/ of the source tree that the test runs in. It does not look
// whether they are there; the caller that starts one reports where it looked.
func Dir() string {
	if dir := os.Getenv("SANDBOX_HELPER_DIR"); dir != "" {
		return dir
	}
	return filepath.Join(Tree(), "build")
}

// Tree returns the top directory of the source tree that the test runs in: the
// nearest one above the working directory with a go.mod. go test starts each
// test in the directory of its package.
func Tree() string {
	dir, err := os.Getwd()
	for err == nil && dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return "."
}
