package core

import (
	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// MaxBoxes is how many boxes a home can have: each has a range of user ids.
const MaxBoxes = 4096

// HostMemoryMiB returns the memory of this host, which no box can have more of.
func HostMemoryMiB() (int, error) {
	var si unix.Sysinfo_t
	if err := unix.Sysinfo(&si); err != nil {
		return 0, fault.Wrap(fault.Internal, err, "read the host's memory")
	}
	return int(si.Totalram * uint64(si.Unit) >> 20), nil
}
