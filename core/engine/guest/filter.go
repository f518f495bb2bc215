package guest

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"sandbox/core/seccomp"
)

const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

// filter refuses commands the calls that some arguments make dangerous. clone3
// takes its flags by pointer, out of a filter's sight: nested namespaces are
// closed by max_user_namespaces and by the capabilities that commands lack.
var filter = seccomp.Filter{Checked: map[int][]bpf.Instruction{
	unix.SYS_CLONE: seccomp.NoBits(0, unix.EPERM, namespaceFlags),
	// Typing into the terminal that a caller shares with the command.
	unix.SYS_IOCTL: seccomp.NoneOf(1, unix.EPERM, unix.TIOCSTI, unix.TIOCLINUX),
	// Rare protocols are where the kernel's holes are. AF_PACKET writes frames
	// under any name to the host's end; ping takes a raw socket of AF_INET.
	unix.SYS_SOCKET: seccomp.Both(
		seccomp.OneOf(0, unix.EAFNOSUPPORT, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK),
		seccomp.NoneOf(2, unix.EPROTONOSUPPORT,
			unix.IPPROTO_MPTCP, unix.IPPROTO_SCTP, unix.IPPROTO_DCCP, unix.IPPROTO_L2TP, unix.IPPROTO_UDPLITE, ipprotoSMC)),
	unix.SYS_SOCKETPAIR: seccomp.OneOf(0, unix.EAFNOSUPPORT, unix.AF_UNIX),
	// The host's huge pages, which no box's limit counts. ENOMEM is what a host
	// without any answers.
	unix.SYS_MEMFD_CREATE: seccomp.NoBits(1, unix.ENOMEM, unix.MFD_HUGETLB),
	unix.SYS_MMAP:         seccomp.NoBits(3, unix.ENOMEM, unix.MAP_HUGETLB),
	unix.SYS_SHMGET:       seccomp.NoBits(2, unix.ENOMEM, shmHugeTLB),
	// Of the caller alone: init runs as the box's root too, and a limit on its
	// time or memory would end it.
	unix.SYS_PRLIMIT64: seccomp.OneOf(0, unix.EPERM, 0),
	// Linux, UNAME26, ADDR_NO_RANDOMIZE-free, and the question.
	unix.SYS_PERSONALITY: seccomp.OneOf(0, unix.EPERM, 0, 0x8, 0x20000, 0x20008, 0xffffffff),
}}

// What golang.org/x/sys lacks.
const (
	ipprotoSMC = 0x100
	shmHugeTLB = 0o4000
)
