package engine

import (
	"path/filepath"

	"sandbox/core/programs"
)

// The names of the programs.
const (
	shimName = "sandbox-shim"
	initName = "sandbox-init"
)

// paths are the paths of the programs.
type paths struct{ shim, init string }

func findPrograms(dir, beside string) (paths, error) {
	found, err := programs.Find(dir, beside, shimName, initName)
	return paths{filepath.Join(found, shimName), filepath.Join(found, initName)}, err
}

// Shim returns the path of the shim program that this client starts if the home
// has no shim.
func (c *Client) Shim() string { return c.shim.programs.shim }
