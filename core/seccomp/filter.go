// Package seccomp refuses system calls to processes that run code which we
// don't trust. Filters are built here, in Go, and loaded as finished programs,
// because compiling a profile with libseccomp takes 15 to 27 ms. A filter
// refuses the calls that are listed, and every call that is newer than
// lastKnown, so that a new kernel does not allow new calls.
package seccomp

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Filter says what is refused in addition to the calls that no confined process
// needs.
type Filter struct {
	Only    []int                     // where it is not nil, all other calls are refused with ENOSYS
	Denied  []int                     // refused with EPERM
	Checked map[int][]bpf.Instruction // allowed or refused by their arguments; see OneOf, NoneOf, NoBits
}

// These are offsets in struct seccomp_data (linux/seccomp.h). An argument has 8
// bytes. Its low half comes first, because the machines that we build for are
// little-endian.
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

// OneOf returns a check that refuses the call with the error otherwise unless
// its argument n is one of values.
func OneOf(n uint32, otherwise unix.Errno, values ...uint32) []bpf.Instruction {
	p := []bpf.Instruction{loadArg(n)}
	for i, v := range values {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(values) - i)})
	}
	return append(p, retErrno(otherwise), retAllow)
}

// NoneOf returns a check that refuses the call with the error otherwise when
// its argument n is one of values.
func NoneOf(n uint32, otherwise unix.Errno, values ...uint32) []bpf.Instruction {
	p := []bpf.Instruction{loadArg(n)}
	for i, v := range values {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(values) - i)})
	}
	return append(p, retAllow, retErrno(otherwise))
}

// NoBits returns a check that refuses the call with the error otherwise when
// its argument n has one of bits set.
func NoBits(n uint32, otherwise unix.Errno, bits uint32) []bpf.Instruction {
	return []bpf.Instruction{
		loadArg(n),
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: bits, SkipTrue: 1},
		retAllow, retErrno(otherwise),
	}
}

// Both returns a check that refuses the call when either of two checks does.
func Both(first, second []bpf.Instruction) []bpf.Instruction {
	all := slices.Clone(first)
	for i, do := range all {
		if do == bpf.Instruction(retAllow) { // go on with the second check instead
			all[i] = bpf.Jump{Skip: uint32(len(all) - 1 - i)} //nolint:gosec // a few instructions
		}
	}
	return append(all, second...)
}

// program returns the whole filter, assembled.
func (f Filter) program() ([]bpf.RawInstruction, error) {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		retKill,
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}
	return bpf.Assemble(append(p, search(f.segments())...))
}

// segment is a range of system call numbers that have the same answer. It
// begins at from and ends where the next one begins.
type segment struct {
	from uint32
	do   []bpf.Instruction
}

// segments divides the numbers of all system calls into ranges.
func (f Filter) segments() []segment {
	s := []segment{}
	for n := range uint32(lastKnown + 1) {
		do := []bpf.Instruction{retAllow}
		if f.Only != nil && !slices.Contains(f.Only, int(n)) {
			do = []bpf.Instruction{retNoSys}
		}
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
	return append(s, segment{lastKnown + 1, []bpf.Instruction{retNoSys}}) // the numbers of x32 lie here too
}

// search returns a binary search for the number in the accumulator. The kernel
// runs the filter once for every call when it is loaded, so the depth of the
// search costs time at every start.
func search(s []segment) []bpf.Instruction {
	if len(s) == 1 {
		return s[0].do
	}
	half := len(s) / 2
	low, high := search(s[:half]), search(s[half:])
	p := []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: s[half].from, SkipFalse: 1},
		bpf.Jump{Skip: uint32(len(low))}, // a conditional jump reaches at most 255 instructions
	}
	return append(append(p, low...), high...)
}

// Load applies the filter to the calling thread and to all its future children.
func (f Filter) Load() error { return f.load(0) }

// LoadAll applies the filter to all threads of the process, which must have
// no_new_privs set.
func (f Filter) LoadAll() error { return f.load(unix.SECCOMP_FILTER_FLAG_TSYNC) }

func (f Filter) load(flags uintptr) error {
	raw, err := f.program()
	if err != nil {
		return fmt.Errorf("build the system call filter: %w", err)
	}
	// bpf.RawInstruction has the size of struct sock_filter but another order
	// of fields, so each instruction is copied.
	program := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	loaded := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&loaded)))
	if errno != 0 {
		return fmt.Errorf("load the system call filter: %w", errno)
	}
	if thread != 0 { // the id of a thread that LoadAll could not filter
		return fmt.Errorf("load the system call filter: thread %d has another", thread)
	}
	return nil
}
