package layer

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"sandbox/core/fault"
)

// Merge merges opened layers into the new directory dir, for their place on those below;
// both are given topmost first. It does so in a child process: argv is the command line of a
// program whose main calls [MergeChild]. On failure dir does not exist. When ctx ends, the
// child is killed. Errors: Storage, Engine (the child died), ResourceExhausted (a directory
// has too many names).
func Merge(ctx context.Context, argv []string, layers, below []*os.File, dir string) error {
	counts := fmt.Sprintf("%d %d", len(layers), len(below))
	return makeIn(ctx, argv, strings.NewReader(counts), dir, slices.Concat(layers, below)...)
}

// MergeChild is the body of the process that [Merge] starts. It locks itself into the new
// directory, gives up all rights except those over files, merges, and returns the exit
// status. It must be the only thing that its process does.
func MergeChild() int { return exitOf(mergeChild()) }

func mergeChild() error {
	runtime.LockOSThread() // with cgo only this thread gives up its rights
	if err := confine(dirFD); err != nil {
		return fault.Wrap(fault.Engine, err, "lock in the process that makes a layer")
	}
	var layers, below int
	if _, err := fmt.Fscan(os.Stdin, &layers, &below); err != nil || layers < 1 {
		return fault.Wrap(fault.Engine, err, "read how many layers are to be merged")
	}
	opened := make([]*os.File, layers+below)
	for i := range opened {
		opened[i] = os.NewFile(uintptr(sourceFD+i), "layer")
	}
	defer runtime.KeepAlive(opened) // merging uses their numbers
	return mergeTrees(opened[:layers], opened[layers:], dirFD)
}
