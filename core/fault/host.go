package fault

import (
	"errors"
	"fmt"
	"syscall"
)

// answers are the errors with which the kernel reports the state of the host
// itself, whatever it was asked for, with what the user can do about each.
var answers = []struct {
	errno syscall.Errno
	kind  Kind
	hint  string
}{
	{syscall.ENOSPC, Storage, "the disk is full, free some space or set SANDBOX_HOME to another disk"},
	{syscall.EDQUOT, Storage, "the disk is full, free some space or set SANDBOX_HOME to another disk"},
	{syscall.EROFS, Storage, "the disk is read-only, set SANDBOX_HOME to another one"},
	{syscall.EIO, Storage, "the disk fails or is damaged, the kernel's log (dmesg) tells more"},
	{syscall.EAGAIN, ResourceExhausted, "end some processes, the host is short of them or of memory"},
	{syscall.ENOMEM, ResourceExhausted, "end some processes, the host is short of memory"},
	{syscall.EMFILE, ResourceExhausted, "raise the limit of open files (ulimit -n)"},
	{syscall.ENFILE, ResourceExhausted, "raise the host's limit of open files (fs.file-max)"},
}

// Host returns the kind of an error that reports the state of the host itself:
// Storage for a disk that is full, read-only or damaged, and ResourceExhausted
// if memory, processes or descriptors have run out. What every other error
// means depends on what was asked for, so only the caller can classify it; ok
// is false then.
func Host(err error) (k Kind, ok bool) {
	for _, a := range answers {
		if errors.Is(err, a.errno) {
			return a.kind, true
		}
	}
	return Internal, false
}

// Short reports whether err says that descriptors have run out, whatever it is
// classified as.
func Short(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// Disk classifies a failure of the home's file system as Storage, unless [Host]
// says that memory, processes or descriptors have run out. The format says what
// was being done, and Disk adds what the user can do about the state of the
// host. A failure that is classified already is returned unchanged. For nil,
// Disk returns nil.
func Disk(err error, format string, args ...any) error {
	if err == nil || Classified(err) {
		return err
	}
	kind, what := Storage, fmt.Sprintf(format, args...)
	for _, a := range answers {
		if errors.Is(err, a.errno) {
			kind, what = a.kind, what+": "+a.hint
			break
		}
	}
	return Wrap(kind, err, "%s", what)
}
