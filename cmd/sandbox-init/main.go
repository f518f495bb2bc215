// Command sandbox-init is process 1 of every box. The helper starts it; it is
// of no use to start by hand.
package main

import (
	"os"

	"sandbox/core/engine/guest"
)

func main() {
	if err := guest.Main(); err != nil {
		_, _ = os.Stderr.WriteString("sandbox-init: " + err.Error() + "\n")
		os.Exit(1)
	}
}
