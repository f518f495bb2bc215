package engine

import (
	"path/filepath"

	"sandbox/core/helpers"
)

// Names of the helper programs.
const (
	shimName = "sandbox-shim"
	initName = "sandbox-init"
)

// programs are the paths of the helpers.
type programs struct{ shim, init string }

func findHelpers(dir, beside string) (programs, error) {
	folder, err := helpers.Find(dir, beside, shimName, initName)
	return programs{filepath.Join(folder, shimName), filepath.Join(folder, initName)}, err
}

// Helper gives the path of the helper program that this home would start.
func (c *Client) Helper() string { return c.helper.programs.shim }
