package engine

// #include <stdlib.h>
// #include "spawn.h"
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// spawn starts a program that is nobody's child: in its own session and its
// own mount namespace, with these descriptors as 0, 1, 2, ... and no others.
//
// The host process must see no child of ours: neither its wait() nor its
// handler of SIGCHLD. Go's own fork always gives it one, so this is C: a clone
// without exit signal, whose child starts the program and ends at once. Both
// share the host's memory until then, so that nothing is copied however large
// the host is, and make system calls only.
func spawn(exe *os.File, argv, env []string, files ...*os.File) error {
	fds := make([]C.int, len(files))
	for i, f := range files {
		// Above the numbers that they will have, so that none overwrites another.
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, len(files))
		if err != nil {
			return fmt.Errorf("pass on %s: %w", f.Name(), err)
		}
		defer unix.Close(fd)
		fds[i] = C.int(fd)
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
	s.exe, s.argv, s.envp, s.fds, s.nfds = C.int(exe.Fd()), args, vars, &fds[0], C.int(len(fds))
	if errno := C.spawn_detached(s); errno != 0 {
		return syscall.Errno(errno)
	}
	return nil
}

// cStrings returns a NULL-ended array of strings in C's memory.
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
