package guest

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"sandbox/core/seccomp"
)

const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

// filter refuses system calls of commands whose arguments make them dangerous.
// A filter can't see the flags of clone3, which takes them by pointer. Nested
// namespaces are therefore also prevented by max_user_namespaces and by the
// capabilities that commands lack.
var filter = seccomp.Filter{Denied: []int{
	// Memory that the kernel itself does not see is for secrets, which no program of a
	// box keeps from its host.
	unix.SYS_MEMFD_SECRET,
	// Where memory lies is the host's to say.
	unix.SYS_MBIND, unix.SYS_SET_MEMPOLICY, unix.SYS_SET_MEMPOLICY_HOME_NODE,
}, Checked: map[int][]bpf.Instruction{
	unix.SYS_CLONE: seccomp.NoBits(0, unix.EPERM, namespaceFlags),
	// These would type into the terminal that a caller shares with the command.
	unix.SYS_IOCTL: seccomp.NoneOf(1, unix.EPERM, unix.TIOCSTI, unix.TIOCLINUX),
	// Rare protocols are refused because that is where the kernel's holes are.
	// AF_PACKET is refused because it sends frames with any sender address to
	// the host's end of the network. ping needs only a raw socket of AF_INET.
	// The kernel takes AF_INET with SOCK_PACKET for AF_PACKET, as in old programs.
	unix.SYS_SOCKET: seccomp.Both(
		seccomp.Both(
			seccomp.OneOf(0, unix.EAFNOSUPPORT, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK),
			seccomp.NoneOf(1, unix.EAFNOSUPPORT, unix.SOCK_PACKET, unix.SOCK_PACKET|unix.SOCK_CLOEXEC,
				unix.SOCK_PACKET|unix.SOCK_NONBLOCK, unix.SOCK_PACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)),
		seccomp.NoneOf(2, unix.EPROTONOSUPPORT,
			unix.IPPROTO_MPTCP, unix.IPPROTO_SCTP, unix.IPPROTO_DCCP, unix.IPPROTO_L2TP, unix.IPPROTO_UDPLITE, ipprotoSMC)),
	unix.SYS_SOCKETPAIR: seccomp.OneOf(0, unix.EAFNOSUPPORT, unix.AF_UNIX),
	// These would use the host's huge pages, which no box's limit counts. ENOMEM
	// is the error on a host that has none.
	unix.SYS_MEMFD_CREATE: seccomp.NoBits(1, unix.ENOMEM, unix.MFD_HUGETLB),
	unix.SYS_MMAP:         seccomp.NoBits(3, unix.ENOMEM, unix.MAP_HUGETLB),
	unix.SYS_SHMGET:       seccomp.NoBits(2, unix.ENOMEM, shmHugeTLB),
	// Only the caller's own limits may be changed. Init runs as the box's root
	// too, and a limit on its CPU time or memory would end it.
	unix.SYS_PRLIMIT64: seccomp.OneOf(0, unix.EPERM, 0),
	// Allowed are PER_LINUX and PER_LINUX32, each also with UNAME26, and
	// 0xffffffff, which only returns the personality. ADDR_NO_RANDOMIZE is not.
	unix.SYS_PERSONALITY: seccomp.OneOf(0, unix.EPERM, 0, 0x8, 0x20000, 0x20008, 0xffffffff),
}}

// These constants are missing in golang.org/x/sys.
const (
	ipprotoSMC = 0x100
	shmHugeTLB = 0o4000
)
