package engine

import (
	"path/filepath"

	"sandbox/core/programs"
)

// Names of the programs.
const (
	shimName = "sandbox-shim"
	initName = "sandbox-init"
)

// programs are the paths of the programs.
type paths struct{ shim, init string }

func findPrograms(dir, beside string) (paths, error) {
	found, err := programs.Find(dir, beside, shimName, initName)
	return paths{filepath.Join(found, shimName), filepath.Join(found, initName)}, err
}

// Shim returns the path of the shim program that this home would start.
func (c *Client) Shim() string { return c.shim.programs.shim }
