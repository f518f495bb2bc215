package core

import (
	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// MaxBoxes is how many boxes a home can have. The limit is there because each
// box has a range of user ids of its own.
const MaxBoxes = 4096

// HostMemoryMiB returns the memory of this host in MiB. No box can have more.
func HostMemoryMiB() (int, error) {
	var si unix.Sysinfo_t
	if err := unix.Sysinfo(&si); err != nil {
		return 0, fault.Wrap(fault.Internal, err, "read the host's memory")
	}
	return int(si.Totalram * uint64(si.Unit) >> 20), nil
}
