package guest

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The system call filter of commands. It is built here and loaded ready-made:
// compiling a profile with libseccomp costs 15 to 27 ms a box. What is refused
// is written down (denied, checked); everything newer than lastKnown is
// refused too, so that a new kernel opens nothing.

// Offsets in struct seccomp_data (linux/seccomp.h). An argument has 8 bytes;
// the machines we build for are little-endian, so its low half comes first.
const (
	offNumber   = 0
	offArch     = 4
	offFirstArg = 16
)

var (
	retAllow = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	retKill  = bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS}
	retPerm  = retErrno(unix.EPERM)
	retNoSys = retErrno(unix.ENOSYS)
)

func retErrno(e unix.Errno) bpf.RetConstant {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(e)}
}

func loadArg(n uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: offFirstArg + 8*n, Size: 4} }

// oneOf allows the call when its argument n is one of values.
func oneOf(n uint32, otherwise bpf.RetConstant, values ...uint32) []bpf.Instruction {
	p := []bpf.Instruction{loadArg(n)}
	for i, v := range values {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(values) - i)})
	}
	return append(p, otherwise, retAllow)
}

// noneOf refuses the call when its argument n is one of values.
func noneOf(n uint32, values ...uint32) []bpf.Instruction {
	p := []bpf.Instruction{loadArg(n)}
	for i, v := range values {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(values) - i)})
	}
	return append(p, retAllow, retPerm)
}

// noBits refuses the call when its argument n has one of bits.
func noBits(n, bits uint32) []bpf.Instruction {
	return []bpf.Instruction{
		loadArg(n),
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: bits, SkipTrue: 1},
		retAllow, retPerm,
	}
}

const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

// checked are the calls that some arguments make dangerous. clone3 takes its
// flags by pointer, out of a filter's sight: nested namespaces are closed by
// max_user_namespaces and by the capabilities that commands lack.
var checked = map[int][]bpf.Instruction{
	unix.SYS_CLONE: noBits(0, namespaceFlags),
	// Typing into the terminal that a caller shares with the command.
	unix.SYS_IOCTL: noneOf(1, unix.TIOCSTI, unix.TIOCLINUX),
	// Rare protocols are where the kernel's holes are.
	unix.SYS_SOCKET: oneOf(0, retErrno(unix.EAFNOSUPPORT),
		unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, unix.AF_PACKET),
	// Of the caller alone: init runs as the box's root too, and a limit on its
	// time or memory would end it.
	unix.SYS_PRLIMIT64: oneOf(0, retPerm, 0),
	// Linux, UNAME26, ADDR_NO_RANDOMIZE-free, and the question.
	unix.SYS_PERSONALITY: oneOf(0, retPerm, 0, 0x8, 0x20000, 0x20008, 0xffffffff),
}

// filter gives the whole program.
func filter() ([]bpf.RawInstruction, error) {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		retKill,
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}
	return bpf.Assemble(append(p, search(segments())...))
}

// segment is a run of calls with one answer, beginning at from.
type segment struct {
	from uint32
	do   []bpf.Instruction
}

// segments cuts the numbers of all calls into runs.
func segments() []segment {
	s := []segment{}
	for n := range uint32(lastKnown + 1) {
		do := []bpf.Instruction{retAllow}
		if slices.Contains(denied, int(n)) {
			do = []bpf.Instruction{retPerm}
		}
		if c, ok := checked[int(n)]; ok {
			do = c
		}
		if len(s) == 0 || !slices.Equal(s[len(s)-1].do, do) {
			s = append(s, segment{n, do})
		}
	}
	return append(s, segment{lastKnown + 1, []bpf.Instruction{retNoSys}}) // and x32's numbers
}

// search is a binary search for the number in the accumulator: the kernel runs
// the filter once for every call when it is loaded, so its depth is start-up time.
func search(s []segment) []bpf.Instruction {
	if len(s) == 1 {
		return s[0].do
	}
	half := len(s) / 2
	low, high := search(s[:half]), search(s[half:])
	p := []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: s[half].from, SkipFalse: 1},
		bpf.Jump{Skip: uint32(len(low))}, // a conditional jump reaches 255 at most
	}
	return append(append(p, low...), high...)
}

// loadFilter filters the calling thread and all its future children.
func loadFilter() error {
	raw, err := filter()
	if err != nil {
		return fmt.Errorf("build the system call filter: %w", err)
	}
	// bpf.RawInstruction has the layout of struct sock_filter, in another order
	// of fields: copy.
	program := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	f := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&f)))
	if errno != 0 {
		return fmt.Errorf("load the system call filter: %w", errno)
	}
	return nil
}
