package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// holdOut brings processes into a state in which they are hard to stop: in the middle
// of a vfork, stopped for a tracer that never looks, or being made and ending all the
// time. It prints a line and goes on for good.
func holdOut(how string) {
	switch how {
	case "vfork":
		fmt.Println("ready") // the parent does not come back
		if child := fork(unix.CLONE_VFORK); child == 0 {
			rest()
		}
	case "traced":
		if child := fork(0); child == 0 {
			_, _, _ = unix.RawSyscall(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0)
			_, _, _ = unix.RawSyscall(unix.SYS_KILL, uintptr(unix.Getpid()), uintptr(unix.SIGSTOP), 0)
			rest()
		}
		fmt.Println("ready")
		rest()
	case "forks":
		fmt.Println("ready")
		for {
			if child := fork(0); child == 0 {
				_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
			for pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid > 0 && err == nil; {
				pid, err = unix.Wait4(-1, nil, unix.WNOHANG, nil)
			}
		}
	}
}

// fork makes a process and returns 0 in it. That one makes nothing but system calls.
func fork(flags uintptr) uintptr {
	child, _, _ := unix.RawSyscall6(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	return child
}

// rest never returns.
func rest() {
	for {
		_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}
