package engine

import (
	"errors"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// DefaultDiskFloor is the value of [Config.DiskFloorMiB] for a home that sets no
// floor of its own.
const DefaultDiskFloor = -1

// The floor that DefaultDiskFloor stands for is the lesser of these two.
const (
	floorShare = 20      // the divisor: a 20th of the disk
	floorMost  = 1 << 30 // bytes
)

// DiskFloor returns how many bytes must stay free on a disk with total bytes.
func (c Config) DiskFloor(total uint64) uint64 {
	if c.DiskFloorMiB == DefaultDiskFloor {
		return min(total/floorShare, floorMost)
	}
	return uint64(c.DiskFloorMiB) << 20 //nolint:gosec // not below 0 otherwise
}

// checkDisk refuses more boxes when the home's disk is nearly full: running
// boxes and the host need what is left. It only looks at the free space of the
// moment, and reserves none. Errors: Storage.
func (c Config) checkDisk() error {
	if c.DiskFloorMiB == 0 {
		return nil
	}
	var st unix.Statfs_t
	err := unix.Statfs(c.Home, &st)
	if errors.Is(err, unix.EACCES) {
		return nil // without access no shim can be started either, and that error says so
	}
	if err != nil {
		return fault.Disk(err, "ask the home %s for its space", c.Home)
	}
	block := uint64(st.Bsize) //nolint:gosec // a size
	if free, floor := st.Bavail*block, c.DiskFloor(st.Blocks*block); free < floor {
		return fault.New(fault.Storage, "the disk of the home %s has %d MiB free, and %d MiB stay free for what runs: "+
			"remove boxes (sandbox rm) or images (sandbox images rm), or set disk_floor_mib in config.toml", c.Home, free>>20, floor>>20)
	}
	return nil
}
