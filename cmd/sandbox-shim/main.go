// Command sandbox-shim makes and keeps the boxes of a home. The library starts
// it when it is needed; it is of no use to start by hand.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/opencontainers/runc/libcontainer"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // makes the namespaces before Go's runtime starts

	"sandbox/core"
	"sandbox/core/engine/shim"
	"sandbox/core/engine/shim/namespaces"
)

func init() {
	// libcontainer starts this very program as the first process of a box.
	if len(os.Args) > 1 && os.Args[1] == "init" {
		libcontainer.Init() // does not return
	}
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox-shim:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "serve":
		return shim.Serve(args[1])
	case len(args) == 2 && args[0] == "enter": // of a user who is not root
		return namespaces.Enter(args[1])
	case len(args) == 2 && args[0] == "serve-user":
		return shim.ServeUser(args[1])
	case len(args) == 2 && args[0] == "outside":
		return namespaces.Outside(args[1])
	case len(args) == 1 && args[0] == "version": // the command 'sandbox doctor' asks
		_, err := fmt.Println(core.Version)
		return err
	}
	return errors.New("this program is started by the sandbox library; see the command sandbox")
}
