package transfer

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

func TestAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want fault.Kind
	}{
		{&os.PathError{Op: "open", Path: "/x", Err: unix.ENOENT}, fault.FileNotFound},
		{unix.EISDIR, fault.IsDirectory},
		{unix.ENOTDIR, fault.InvalidArgument},
		{unix.ENOSPC, fault.Storage},
		{unix.EFBIG, fault.Storage},
		{fmt.Errorf("x: %w", unix.EMFILE), fault.ResourceExhausted},
		{unix.ENOSYS, fault.Engine},
		{errors.New("x"), fault.Engine},
		{fault.Wrap(fault.InvalidArgument, unix.ENOSPC, "x"), fault.InvalidArgument},
	} {
		if got := answer(tt.err); got.Kind != tt.want || got.Message != tt.err.Error() {
			t.Errorf("%v is answered with %v: %q, want %v", tt.err, got.Kind, got.Message, tt.want)
		}
	}
}
