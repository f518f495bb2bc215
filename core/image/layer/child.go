package layer

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/userns"
)

// The file descriptors of a child, besides the tar, or the sign to begin, on its standard
// input.
const (
	dirFD     = 3
	failureFD = 4
	sourceFD  = 5 // of a child that copies; the first one of a child that merges
)

// failure is the message that a child writes to failureFD when it fails.
type failure struct {
	Code    fault.Kind `json:"code"`
	Message string     `json:"message"`
}

// Unpack extracts a plain tar into the new directory dir. It does so in a child
// process: argv is the command line of a program whose main calls [Child]. On
// failure dir does not exist. When ctx ends, the child is killed. Errors:
// Image, Storage, Engine (the child died).
func Unpack(ctx context.Context, argv []string, tar io.Reader, dir string) error {
	return makeIn(ctx, argv, tar, dir)
}

// makeIn has a child make what goes into the new directory dir. The child gets input and
// files. On failure dir does not exist.
func makeIn(ctx context.Context, argv []string, input io.Reader, dir string, files ...*os.File) (err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fault.Disk(err, "make a layer's directory")
	}
	root, err := os.Open(dir)
	if err != nil {
		_ = os.Remove(dir)
		return fault.Disk(err, "open a layer's directory")
	}
	defer root.Close()
	defer func() {
		if err != nil {
			removeMade(root, dir)
		}
	}()
	answer, tell, err := os.Pipe()
	if err != nil {
		return fault.Wrap(fault.ResourceExhausted, err, "make a pipe")
	}
	defer answer.Close()
	defer tell.Close()

	cmd := command(ctx, argv, append([]*os.File{root, tell}, files...)...)
	cmd.Stdin = input
	return outcome(ctx, cmd.Run(), answer, tell)
}

// removeMade removes the directory root, which was made at dir. When whoever wanted it is
// gone, another may have removed it already and made its own there, which stays.
func removeMade(root *os.File, dir string) {
	made, err1 := root.Stat()
	there, err2 := os.Lstat(dir)
	if err1 == nil && err2 == nil && os.SameFile(made, there) {
		_ = os.RemoveAll(dir)
	}
}

// command returns the command of a child, which has files as its descriptors from 3 on.
func command(ctx context.Context, argv []string, files ...*os.File) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = []string{} // nil would pass on our environment
	cmd.ExtraFiles = files
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWIPC, Setsid: true}
	return cmd
}

// outcome returns the failure of a child that has ended.
func outcome(ctx context.Context, err error, answer io.Reader, tell io.Closer) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fault.Of(ctx.Err())
	}
	_ = tell.Close() // otherwise reading the answer would not end
	var f failure
	if jsonErr := json.NewDecoder(io.LimitReader(answer, 64<<10)).Decode(&f); jsonErr == nil {
		return fault.New(f.Code, "%s", f.Message)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fault.Wrap(fault.Engine, err, "the process that makes a layer died")
	}
	return fault.Wrap(fault.Engine, err, "make a layer") // the child did not start, or the tar could not be read
}

// Child is the body of the process that [Unpack] starts. It locks itself into
// the layer's directory, gives up all rights except those over files, extracts
// the tar, and returns the exit status. It must be the only thing that its
// process does.
func Child() int { return exitOf(child()) }

// exitOf tells why a child failed, and returns its exit status.
func exitOf(err error) int {
	if err == nil {
		return 0
	}
	tell := os.NewFile(failureFD, "failure")
	if json.NewEncoder(tell).Encode(failure{fault.Of(err).Kind, err.Error()}) != nil {
		return 2
	}
	return 1
}

func child() error {
	runtime.LockOSThread() // with cgo only this thread gives up its rights
	dir := os.NewFile(dirFD, "directory")
	// A bigger pipe lets the sender work ahead. It is only an optimisation,
	// so a failure is ignored: the tar may be a file, or the user's share
	// of pipe memory may be used up.
	_, _ = unix.FcntlInt(0, unix.F_SETPIPE_SZ, 1<<20)
	oneID := userns.OneID() // which can't be seen from within the directory
	if err := confine(dirFD); err != nil {
		return fault.Wrap(fault.Engine, err, "lock in the process that makes a layer")
	}
	return extract(os.Stdin, dir, DefaultLimits, oneID)
}

// kept are the capabilities that unpacking needs: to change the owners of
// files, to enter directories whose mode forbids it, to change files that now
// have another owner, to keep setgid bits, and to set file capabilities. A
// whiteout needs no CAP_MKNOD.
const kept = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID | 1<<unix.CAP_SETFCAP

// confine locks the process into the directory fd. A chroot is enough for that,
// because the process has no CAP_SYS_CHROOT, no mount and no descriptor from
// outside with which it could get out.
func confine(fd int) error {
	if err := unix.Fchdir(fd); err != nil {
		return err
	}
	if err := unix.Chroot("."); err != nil {
		return err
	}
	unix.Umask(0)
	if err := onAllThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); err != nil {
		return err
	}
	for c := uintptr(0); ; c++ {
		if kept>>c&1 == 1 {
			continue
		}
		err := onAllThreads(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0)
		if errors.Is(err, unix.EINVAL) {
			break // the kernel knows no further capabilities
		}
		if err != nil {
			return err
		}
	}
	return keepOnly(kept)
}

// keepOnly gives up all capabilities except those in mask. Ambient capabilities
// are lost as well.
func keepOnly(mask uint32) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	mask &= data[0].Permitted
	data = [2]unix.CapUserData{{Effective: mask, Permitted: mask}}
	return onAllThreads(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data)), 0)
}

// onAllThreads makes a system call that concerns one thread in all of them.
// A program with cgo, as those of tests are, can't: there it concerns the
// calling thread, which does all the work of a child.
//
//go:uintptrescapes
func onAllThreads(call, a, b, c uintptr) error {
	_, _, errno := syscall.AllThreadsSyscall(call, a, b, c)
	if errno == syscall.ENOTSUP {
		_, _, errno = syscall.RawSyscall(call, a, b, c)
	}
	if errno != 0 {
		return errno
	}
	return nil
}
