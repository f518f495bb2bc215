package engine

// #include <stdlib.h>
// #include "spawn.h"
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// spawn starts a program that is not a child of this process. It runs in its
// own session and, for root, its own mount namespace, with files as its descriptors 0, 1,
// 2, ... and no others.
//
// The host process must notice no child of this library, neither in its wait()
// nor in its SIGCHLD handler. Go's own fork always makes such a child, so this
// is done in C: a clone without an exit signal, whose child starts the program
// and ends at once. Both processes share the host's memory until then, so that
// nothing is copied however large the host is; therefore they only make system
// calls.
func spawn(exe *os.File, argv, env []string, files ...*os.File) error {
	fds := make([]C.int, 0, len(files)+1)
	for _, f := range slices.Concat(files, []*os.File{exe}) {
		// The duplicates get numbers above those that the program will have, so
		// that none overwrites another, nor the program itself.
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, len(files))
		if err != nil {
			return fmt.Errorf("pass on %s: %w", f.Name(), err)
		}
		defer unix.Close(fd)
		fds = append(fds, C.int(fd))
	}
	args, freeArgs := cStrings(argv)
	defer freeArgs()
	vars, freeVars := cStrings(env)
	defer freeVars()
	s := (*C.struct_spawn)(C.calloc(1, C.sizeof_struct_spawn))
	defer C.free(unsafe.Pointer(s))
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&fds[0])
	s.exe, s.argv, s.envp, s.fds, s.nfds = fds[len(files)], args, vars, &fds[0], C.int(len(files))
	if errno := C.spawn_detached(s); errno != 0 {
		return syscall.Errno(errno)
	}
	return nil
}

// cStrings returns a NULL-terminated array of strings in C's memory, and a
// function that frees it.
func cStrings(list []string) (array **C.char, free func()) {
	array = (**C.char)(C.calloc(C.size_t(len(list)+1), C.size_t(unsafe.Sizeof(uintptr(0)))))
	slots := unsafe.Slice(array, len(list))
	for i, s := range list {
		slots[i] = C.CString(s)
	}
	return array, func() {
		for _, s := range slots {
			C.free(unsafe.Pointer(s))
		}
		C.free(unsafe.Pointer(array))
	}
}
