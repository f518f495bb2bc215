// Package seccomp refuses system calls to processes that run what we don't
// trust. Filters are built here and loaded ready-made: compiling a profile with
// libseccomp costs 15 to 27 ms. What is refused is written down; everything
// newer than lastKnown is refused too, so that a new kernel opens nothing.
package seccomp

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Filter says what is refused beside the calls that nothing which is confined
// has a use for.
type Filter struct {
	Denied  []int                     // with EPERM
	Checked map[int][]bpf.Instruction // by their arguments: OneOf, NoneOf, NoBits
}

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

// OneOf refuses the call with otherwise unless its argument n is one of values.
func OneOf(n uint32, otherwise unix.Errno, values ...uint32) []bpf.Instruction {
	p := []bpf.Instruction{loadArg(n)}
	for i, v := range values {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(values) - i)})
	}
	return append(p, retErrno(otherwise), retAllow)
}

// NoneOf refuses the call with otherwise when its argument n is one of values.
func NoneOf(n uint32, otherwise unix.Errno, values ...uint32) []bpf.Instruction {
	p := []bpf.Instruction{loadArg(n)}
	for i, v := range values {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(values) - i)})
	}
	return append(p, retAllow, retErrno(otherwise))
}

// NoBits refuses the call with otherwise when its argument n has one of bits.
func NoBits(n uint32, otherwise unix.Errno, bits uint32) []bpf.Instruction {
	return []bpf.Instruction{
		loadArg(n),
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: bits, SkipTrue: 1},
		retAllow, retErrno(otherwise),
	}
}

// Both refuses the call when either of two checks does.
func Both(first, second []bpf.Instruction) []bpf.Instruction {
	all := slices.Clone(first)
	for i, do := range all {
		if do == bpf.Instruction(retAllow) { // goes on to the second
			all[i] = bpf.Jump{Skip: uint32(len(all) - 1 - i)} //nolint:gosec // a few instructions
		}
	}
	return append(all, second...)
}

// program assembles the whole filter.
func (f Filter) program() ([]bpf.RawInstruction, error) {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		retKill,
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}
	return bpf.Assemble(append(p, search(f.segments())...))
}

// segment is a run of calls with one answer, beginning at from.
type segment struct {
	from uint32
	do   []bpf.Instruction
}

// segments cuts the numbers of all calls into runs.
func (f Filter) segments() []segment {
	s := []segment{}
	for n := range uint32(lastKnown + 1) {
		do := []bpf.Instruction{retAllow}
		if slices.Contains(denied, int(n)) || slices.Contains(f.Denied, int(n)) {
			do = []bpf.Instruction{retPerm}
		}
		if c, ok := f.Checked[int(n)]; ok {
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

// Load filters the calling thread and all its future children.
func (f Filter) Load() error { return f.load(0) }

// LoadAll filters all threads of the process, which must have no_new_privs.
func (f Filter) LoadAll() error { return f.load(unix.SECCOMP_FILTER_FLAG_TSYNC) }

func (f Filter) load(flags uintptr) error {
	raw, err := f.program()
	if err != nil {
		return fmt.Errorf("build the system call filter: %w", err)
	}
	// bpf.RawInstruction has the layout of struct sock_filter, in another order
	// of fields: copy.
	program := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	loaded := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&loaded)))
	if errno != 0 {
		return fmt.Errorf("load the system call filter: %w", errno)
	}
	if thread != 0 { // LoadAll's way to say that one could not be filtered
		return fmt.Errorf("load the system call filter: thread %d has another", thread)
	}
	return nil
}
