// Command sandbox-logs holds the embedded log engine. The command `sandbox
// serve` starts it; it is of no use to start by hand.
package main

import (
	"fmt"
	"os"
	"runtime"

	"sandbox/core"
	"sandbox/logs/embedded/chdb"
)

// The process's first thread is for main alone: the engine can't run on it,
// see chdb.Main.
func init() { runtime.LockOSThread() }

func main() {
	if len(os.Args) == 2 && os.Args[1] == "version" { // the command 'sandbox doctor' asks
		fmt.Println(core.Version)
		return
	}
	if err := chdb.Main(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox-logs:", err)
		os.Exit(1)
	}
}
