// Command sandbox-init is process 1 of every box. The helper starts it; it is
// of no use to start by hand.
package main

import (
	"os"

	"sandbox/core/engine/guest"
	"sandbox/core/engine/transfer"
)

func main() {
	// Init starts this very program to move files, with the box's rights.
	if len(os.Args) == 2 && os.Args[1] == transfer.Argument {
		transfer.Main()
		return
	}
	if err := guest.Main(); err != nil {
		_, _ = os.Stderr.WriteString("sandbox-init: " + err.Error() + "\n")
		os.Exit(1)
	}
}
