package shim

/*
#define _GNU_SOURCE
#include <errno.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// hold keeps a user namespace alive until it is killed, or its parent is. It
// shares the parent's memory, so that making it copies nothing, and must not
// touch it: it has a stack of its own and only makes system calls. It begins with
// the parent's own table of descriptors, of which there may be thousands, and
// takes an empty one instead: with the lock and the connections open, a killed
// shim would look alive. Where it can't, it ends.
static int hold(void *parent) {
	syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (syscall(SYS_getppid) != (long)parent) // it was killed just before
		syscall(SYS_exit_group, 0);
	if (syscall(SYS_close_range, 0, ~0U, CLOSE_RANGE_UNSHARE))
		syscall(SYS_exit_group, 0);
	for (;;)
		syscall(SYS_ppoll, 0, 0, 0, 0, 0);
	return 0;
}

// new_user_namespace makes such a process; -errno on failure. All signals are
// blocked in it: this process's handlers are not its own.
static int new_user_namespace(char *stack_end) {
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int pid = clone(hold, stack_end, CLONE_VM | CLONE_FILES | CLONE_NEWUSER | SIGCHLD, (void *)(long)getpid());
	int err = errno;
	pthread_sigmask(SIG_SETMASK, &old, 0);
	return pid < 0 ? -err : pid;
}
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/image/layer"
)

// idsPerBox is how many user and group ids a box has: as many as there are on a
// Unix with ids of 16 bits.
const idsPerBox = layer.IDsPerBox

// holderStack is the stack size in bytes of the process that holds a user
// namespace. It is enough for a process that only makes system calls.
const holderStack = 16 << 10

// idRange maps the size ids that begin at inside to those that begin at outside.
type idRange struct{ inside, outside, size int }

// userNamespace returns a new user namespace with these id mappings. A mount that
// is id-mapped with it shows files that are owned by an inside id on disk as
// owned by the outside id on the host. The caller closes the file.
func userNamespace(uids, gids []idRange) (*os.File, error) {
	runtime.LockOSThread() // the holder is killed when the thread that made it ends
	defer runtime.UnlockOSThread()
	stack := C.malloc(holderStack)
	pid := int(C.new_user_namespace((*C.char)(unsafe.Add(stack, holderStack))))
	if pid < 0 {
		C.free(stack)
		return nil, fmt.Errorf("make a user namespace: %w", syscall.Errno(-pid))
	}
	defer func() {
		_ = unix.Kill(pid, unix.SIGKILL)
		go func() { // the holder takes a while to end, and nobody has to wait for that
			_, _ = unix.Wait4(pid, nil, 0, nil)
			C.free(stack)
		}()
	}()
	for file, ranges := range map[string][]idRange{"uid_map": uids, "gid_map": gids} {
		var mapping []byte
		for _, r := range ranges {
			mapping = fmt.Appendf(mapping, "%d %d %d\n", r.inside, r.outside, r.size)
		}
		if err := write("/proc/"+strconv.Itoa(pid), file, string(mapping)); err != nil {
			return nil, fmt.Errorf("map the ids of a user namespace: %w", err)
		}
	}
	return os.Open(fmt.Sprintf("/proc/%d/ns/user", pid))
}

// idMaps has the user namespaces that map the owners of layers into the range of ids of
// one box.
type idMaps struct {
	base int              // the first id of the box's range
	host bool             // the layers are directories of the host, whose owners are the host's
	from map[int]*os.File // by the first id of the layers' range
}

// newIDMaps returns the maps for a box whose range begins at base. The caller closes
// them.
func newIDMaps(base int) *idMaps { return &idMaps{base: base, from: map[int]*os.File{}} }

// of returns the user namespace for a layer that has been opened. It belongs to m.
func (m *idMaps) of(f *os.File) (*os.File, error) {
	from := 0
	if !m.host {
		var err error
		if from, err = layer.Base(f); err != nil {
			return nil, err
		}
	}
	if m.from[from] == nil {
		all := []idRange{{from, m.base, idsPerBox}}
		userns, err := userNamespace(all, all)
		if err != nil {
			return nil, fault.Wrap(fault.Unsupported, err, "id-mapped layers need user namespaces")
		}
		m.from[from] = userns
	}
	return m.from[from], nil
}

func (m *idMaps) close() {
	for _, userns := range m.from {
		_ = userns.Close()
	}
}
