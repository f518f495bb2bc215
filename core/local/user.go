package local

import (
	"os"

	"sandbox/core/engine/rootless"
)

// Able tells whether boxes can be made in this process: it is root's, or that of a user
// who has the ids for it. What else may be missing the first box says.
func Able() bool {
	if os.Geteuid() == 0 {
		return true
	}
	_, _, err := rootless.Spans()
	return err == nil
}
