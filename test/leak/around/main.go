// Command around runs a command and fails if that left something behind: the
// processes, mounts, cgroups and directories that package leak looks for. Suites
// that are not written in Go run under it.
//
//	go run ./test/leak/around node --test
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"sandbox/test/leak"
)

func main() { os.Exit(leak.Run(command(os.Args[1:]))) }

type command []string

// Run runs the command and returns its exit code.
func (c command) Run() int {
	if len(c) == 0 {
		fmt.Fprintln(os.Stderr, "around: which command?")
		return 2
	}
	cmd := exec.Command(c[0], c[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	var ended *exec.ExitError
	err := cmd.Run()
	if err != nil && !errors.As(err, &ended) {
		fmt.Fprintln(os.Stderr, "around:", err)
		return 2
	}
	return cmd.ProcessState.ExitCode()
}
