package guest

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// heardPC is the address of a signal handler that adds heardOne to the eventfd heardFD
// when a signal comes from outside the box.
var (
	heardPC  uintptr
	heardFD  int32      //nolint:unused // the handler reads it
	heardOne uint64 = 1 //nolint:unused // so is this
)

// hear makes the eventfd of that handler.
func hear() (*os.File, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("hear signals from outside: %w", err)
	}
	heardFD = int32(fd) //nolint:gosec // a descriptor
	return os.NewFile(uintptr(fd), "signals"), nil
}

// await waits for a signal from outside.
func await(signals *os.File) error {
	var count [8]byte
	_, err := signals.Read(count[:])
	if err == nil && binary.NativeEndian.Uint64(count[:]) == 0 {
		err = unix.EINVAL // an eventfd is never read as 0
	}
	return err
}
