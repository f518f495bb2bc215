package fault_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"sandbox/core/fault"
)

func TestHost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		kind fault.Kind
		ok   bool
	}{
		{syscall.ENOSPC, fault.Storage, true},
		{fmt.Errorf("x: %w", &os.PathError{Op: "write", Path: "/x", Err: syscall.EROFS}), fault.Storage, true},
		{syscall.EDQUOT, fault.Storage, true},
		{syscall.EIO, fault.Storage, true},
		{os.NewSyscallError("fork", syscall.EAGAIN), fault.ResourceExhausted, true},
		{syscall.ENOMEM, fault.ResourceExhausted, true},
		{syscall.EMFILE, fault.ResourceExhausted, true},
		{syscall.ENFILE, fault.ResourceExhausted, true},
		{syscall.ENOENT, fault.Internal, false},
		{io.ErrShortWrite, fault.Internal, false},
		{nil, fault.Internal, false},
	} {
		if kind, ok := fault.Host(tt.err); kind != tt.kind || ok != tt.ok {
			t.Errorf("Host(%v) is %v, %v", tt.err, kind, ok)
		}
	}
}

func TestDiskSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		kind fault.Kind
		want string
	}{
		{&os.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC}, fault.Storage, "write it: the disk is full"},
		{syscall.EDQUOT, fault.Storage, "full"},
		{syscall.EROFS, fault.Storage, "read-only"},
		{syscall.EIO, fault.Storage, "dmesg) tells more: input/output error"},
		{&os.PathError{Op: "open", Path: "/x", Err: syscall.EMFILE}, fault.ResourceExhausted, "write it: raise the limit of open files"},
		{syscall.ENFILE, fault.ResourceExhausted, "fs.file-max"},
		{syscall.ENOMEM, fault.ResourceExhausted, "memory"},
		{syscall.EAGAIN, fault.ResourceExhausted, "memory"},
		{io.ErrShortWrite, fault.Storage, "write it: short write"},
		{fmt.Errorf("y: %w", fault.New(fault.Image, "bad")), fault.Image, "y: bad"},
	} {
		err := fault.Disk(tt.err, "write %s", "it")
		if !fault.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Disk(%v) is %v, want %v with %q", tt.err, err, tt.kind, tt.want)
		}
	}
	if err := fault.Disk(nil, "x"); err != nil {
		t.Errorf("Disk(nil) is %v", err)
	}
}
