// Command sandbox-pod is process 1 of a box that is a pod: the init of the box, which
// serves its engine over TLS. A pod has it from an image volume, or from an init
// container that installed it.
package main

import (
	"errors"
	"fmt"
	"os"

	"sandbox/core"
	"sandbox/core/engine/guest"
	"sandbox/core/engine/transfer"
)

func main() {
	// The same program, started anew, moves files with the rights of a user of the box.
	// What the box can read of it, in its own file, is what everybody can read: there is
	// no secret in it. The file must not be one that the box may write, though: the next
	// child of init would be another program, with the rights of whom it works for.
	if len(os.Args) == 2 && os.Args[1] == transfer.Argument {
		transfer.Main()
		return
	}
	// Package guest keeps the main thread to itself.
	failed := make(chan error)
	go func() { failed <- run(os.Args[1:]) }()
	if err := <-failed; err != nil {
		lastWords("sandbox-pod: " + err.Error())
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) > 0 && args[0] == "serve":
		return serve(args[1:])
	case len(args) == 2 && args[0] == "install":
		return install(args[1])
	case len(args) > 0 && args[0] == "paths":
		return guest.CheckPaths(args[1:])
	case len(args) == 1 && args[0] == "version":
		_, err := fmt.Println(core.Version)
		return err
	}
	return errors.New("usage: sandbox-pod serve [-listen ADDRESS] [-tls DIRECTORY | -own-key] [-grace TIME] [-disk DIRECTORY -image DIRECTORY -life N] | install DIRECTORY | paths [MEMBER DIRECTORY PATH]... | version")
}

// lastWords say why process 1 ends: in the container's log, and in the state of the
// container, where Kubernetes shows what is in this file.
func lastWords(why string) {
	_, _ = fmt.Fprintln(os.Stderr, why)
	if f, err := os.OpenFile("/dev/termination-log", os.O_WRONLY|os.O_TRUNC, 0); err == nil && os.Getpid() == 1 {
		_, _ = f.WriteString(why)
		_ = f.Close()
	}
}
