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

// Space is the space of the home's disk, in bytes.
type Space struct{ Free, Floor uint64 }

// Low tells whether so little is free that it is time to look at what grows:
// less than twice the floor, since at the floor nothing is made any more.
func (s Space) Low() bool { return s.Free < 2*s.Floor }

// Space asks the kernel for the space of the home's disk, which costs one system
// call. Errors: Storage.
func (c Config) Space() (Space, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(c.Home, &st); err != nil {
		return Space{}, fault.Disk(err, "ask the home %s for its space", c.Home)
	}
	block := uint64(st.Bsize) //nolint:gosec // a size
	return Space{Free: st.Bavail * block, Floor: c.DiskFloor(st.Blocks * block)}, nil
}

// Room returns why nothing that is large may be written to the home, or nil: less of its
// disk is free than is to stay so. Errors: Storage.
func (c *Client) Room() error { return c.config.checkDisk() }

// checkDisk refuses more boxes when the home's disk is nearly full: running
// boxes and the host need what is left. It only looks at the free space of the
// moment, and reserves none. Errors: Storage.
func (c Config) checkDisk() error {
	if c.DiskFloorMiB == 0 {
		return nil
	}
	s, err := c.Space()
	if errors.Is(err, unix.EACCES) {
		return nil // without access no shim can be started either, and that error says so
	}
	if err != nil {
		return err
	}
	if s.Free < s.Floor {
		return fault.New(fault.Storage, "the disk of the home %s has %d MiB free, and %d MiB stay free for what runs: "+
			"remove boxes (sandbox rm) or images (sandbox images rm), or set disk_floor_mib in config.toml", c.Home, s.Free>>20, s.Floor>>20)
	}
	return nil
}
