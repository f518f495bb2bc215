package chdb

import (
	"golang.org/x/sys/unix"

	"sandbox/core/seccomp"
)

// filter is the seccomp filter of the engine. It leaves it the socket that it
// inherits and its own threads. It denies new connections, the start of
// programs, and access to other processes.
var filter = seccomp.Filter{Denied: []int{
	unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN,
	unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_MEMFD_CREATE,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL,
	unix.SYS_CHROOT, unix.SYS_MKNODAT,
}}
