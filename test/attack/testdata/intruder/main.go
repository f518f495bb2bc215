// Command intruder makes the system calls that the commands of a box must not
// get through with, and prints each with the answer of the kernel. With an argument
// it does what [holdOut] says instead.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

type call struct {
	name string
	nr   uintptr
	args [6]uintptr
}

var (
	path  = []byte("/tmp\x00")
	none  = []byte("none\x00")
	tmpfs = []byte("tmpfs\x00")
	node  = []byte("/tmp/node\x00")
	block = []byte("/tmp/block\x00")
	buf   [256]byte
	limit = unix.Rlimit{Cur: 1, Max: 1}
	clone = [11]uint64{unix.CLONE_NEWUSER, 0, 0, 0, uint64(unix.SIGCHLD)} // struct clone_args
	zero  = ptr(&buf[0])
	vec   = unix.Iovec{Base: &buf[0], Len: 8}
	far   = unix.RemoteIovec{Base: 0x400000, Len: 8}
)

func ptr[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

func calls() []call {
	mnt, _ := unix.Open("/proc/self/ns/mnt", unix.O_RDONLY, 0)
	return []call{
		{"unshare user", unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWUSER}},
		{"unshare mount", unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWNS}},
		{"clone3 user", unix.SYS_CLONE3, [6]uintptr{ptr(&clone), unsafe.Sizeof(clone)}},
		{"setns", unix.SYS_SETNS, [6]uintptr{uintptr(mnt), unix.CLONE_NEWNS}},
		{"mount", unix.SYS_MOUNT, [6]uintptr{ptr(&none[0]), ptr(&path[0]), ptr(&tmpfs[0])}},
		{"remount", unix.SYS_MOUNT, [6]uintptr{ptr(&none[0]), ptr(&path[0]), ptr(&none[0]), unix.MS_REMOUNT}},
		{"umount", unix.SYS_UMOUNT2, [6]uintptr{ptr(&path[0]), unix.MNT_DETACH}},
		{"pivot_root", unix.SYS_PIVOT_ROOT, [6]uintptr{ptr(&path[0]), ptr(&path[0])}},
		{"fsopen", unix.SYS_FSOPEN, [6]uintptr{ptr(&tmpfs[0])}},
		{"open_tree", unix.SYS_OPEN_TREE, [6]uintptr{0, ptr(&path[0]), unix.OPEN_TREE_CLONE}},
		{"mknod null", unix.SYS_MKNODAT, [6]uintptr{0, ptr(&node[0]), unix.S_IFCHR | 0o666, uintptr(unix.Mkdev(1, 3))}},
		{"mknod disk", unix.SYS_MKNODAT, [6]uintptr{0, ptr(&block[0]), unix.S_IFBLK | 0o666, uintptr(unix.Mkdev(8, 0))}},
		{"ptrace attach", unix.SYS_PTRACE, [6]uintptr{unix.PTRACE_ATTACH, 1}},
		{"ptrace seize", unix.SYS_PTRACE, [6]uintptr{unix.PTRACE_SEIZE, 1}},
		{"process_vm_readv", unix.SYS_PROCESS_VM_READV, [6]uintptr{1, ptr(&vec), 1, ptr(&far), 1}},
		{"process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, [6]uintptr{1, ptr(&vec), 1, ptr(&far), 1}},
		{"limit descriptors", unix.SYS_PRLIMIT64, [6]uintptr{1, unix.RLIMIT_NOFILE, ptr(&limit)}},
		{"limit memory", unix.SYS_PRLIMIT64, [6]uintptr{1, unix.RLIMIT_AS, ptr(&limit)}},
		{"limit time", unix.SYS_PRLIMIT64, [6]uintptr{1, unix.RLIMIT_CPU, ptr(&limit)}},
		{"kcmp", unix.SYS_KCMP, [6]uintptr{1, uintptr(os.Getpid())}},
		{"keyctl", unix.SYS_KEYCTL, [6]uintptr{0, ^uintptr(2)}},
		{"add_key", unix.SYS_ADD_KEY, [6]uintptr{ptr(&none[0]), ptr(&none[0])}},
		{"bpf", unix.SYS_BPF, [6]uintptr{0, zero, 64}},
		{"io_uring", unix.SYS_IO_URING_SETUP, [6]uintptr{1, zero}},
		{"userfaultfd", unix.SYS_USERFAULTFD, [6]uintptr{1}},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [6]uintptr{zero}},
		{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, [6]uintptr{0, zero}},
		{"fanotify_init", unix.SYS_FANOTIFY_INIT, [6]uintptr{}},
		{"init_module", unix.SYS_INIT_MODULE, [6]uintptr{zero, 8, zero}},
		{"reboot", unix.SYS_REBOOT, [6]uintptr{unix.LINUX_REBOOT_MAGIC1, unix.LINUX_REBOOT_MAGIC2, unix.LINUX_REBOOT_CMD_CAD_OFF}},
		{"syslog", unix.SYS_SYSLOG, [6]uintptr{3, zero, 64}},
		{"sethostname", unix.SYS_SETHOSTNAME, [6]uintptr{zero, 1}},
		{"swapon", unix.SYS_SWAPON, [6]uintptr{ptr(&path[0])}},
		{"acct", unix.SYS_ACCT, [6]uintptr{}},
		{"clock_settime", unix.SYS_CLOCK_SETTIME, [6]uintptr{0, zero}},
		{"socket alg", unix.SYS_SOCKET, [6]uintptr{unix.AF_ALG, unix.SOCK_SEQPACKET}},
		{"socket vsock", unix.SYS_SOCKET, [6]uintptr{unix.AF_VSOCK, unix.SOCK_STREAM}},
		{"socket packet", unix.SYS_SOCKET, [6]uintptr{unix.AF_PACKET, unix.SOCK_RAW}},
		{"socket packet, cooked", unix.SYS_SOCKET, [6]uintptr{unix.AF_PACKET, unix.SOCK_DGRAM}},
		{"socket packet, of old", unix.SYS_SOCKET, [6]uintptr{unix.AF_INET, unix.SOCK_PACKET, 0x0300}},
		{"socket packet, of old, closed on exec", unix.SYS_SOCKET, [6]uintptr{unix.AF_INET, unix.SOCK_PACKET | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK, 0x0300}},
		{"socket mptcp", unix.SYS_SOCKET, [6]uintptr{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}},
		{"socket mptcp 6", unix.SYS_SOCKET, [6]uintptr{unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}},
		{"socket sctp", unix.SYS_SOCKET, [6]uintptr{unix.AF_INET, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP}},
		{"socketpair tipc", unix.SYS_SOCKETPAIR, [6]uintptr{unix.AF_TIPC, unix.SOCK_STREAM, 0, zero}},
		{"socketpair inet", unix.SYS_SOCKETPAIR, [6]uintptr{unix.AF_INET, unix.SOCK_STREAM, 0, zero}},
		{"memfd of huge pages", unix.SYS_MEMFD_CREATE, [6]uintptr{ptr(&none[0]), unix.MFD_HUGETLB}},
		{"mmap of huge pages", unix.SYS_MMAP, [6]uintptr{0, 2 << 20, unix.PROT_READ, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_HUGETLB, ^uintptr(0)}},
		{"shared memory of huge pages", unix.SYS_SHMGET, [6]uintptr{0, 2 << 20, 0o4000 | 0o1000}},
		{"a later call", 9999, [6]uintptr{}},
	}
}

// ask makes signals reach init from the kernel: of a pipe with init as owner.
func ask(sig int) error {
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETOWN, 1); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETSIG, sig); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETFL, unix.O_ASYNC); err != nil {
		return err
	}
	_, err := unix.Write(p[1], []byte("x"))
	return err
}

func main() {
	runtime.LockOSThread()
	if len(os.Args) > 1 {
		holdOut(os.Args[1])
	}
	for _, c := range calls() {
		_, _, errno := unix.RawSyscall6(c.nr, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
		fmt.Printf("%s: %s\n", c.name, unix.ErrnoName(errno))
	}
	for sig := range 65 {
		if err := ask(sig); err != nil && !errors.Is(err, unix.EINVAL) {
			fmt.Printf("signal %d by a pipe: %v\n", sig, err)
		}
	}
}
