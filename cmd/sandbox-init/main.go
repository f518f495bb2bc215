// Command sandbox-init is process 1 of every box; and it makes layers, as a
// program without cgo can give up a right in all of its threads. The shim
// starts it; it is of no use to start by hand.
package main

import (
	"os"

	"sandbox/core/engine/guest"
	"sandbox/core/engine/transfer"
	"sandbox/core/image/layer"
)

func main() {
	// The same program, started anew, moves files with a box's rights, and
	// unpacks, copies and merges layers for the shim.
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case transfer.Argument:
			transfer.Main()
			return
		case "unpack":
			os.Exit(layer.Child())
		case "copy":
			os.Exit(layer.CopyChild())
		case "merge":
			os.Exit(layer.MergeChild())
		}
	}
	if err := guest.Main(); err != nil {
		_, _ = os.Stderr.WriteString("sandbox-init: " + err.Error() + "\n")
		os.Exit(1)
	}
}
