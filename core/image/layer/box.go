package layer

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// IDsPerBox is how many user and group ids a box has. The ranges of boxes begin at multiples of it.
const IDsPerBox = 1 << 16

// Base returns the first of the 65,536 ids in which the owners of an opened layer lie: 0
// for a layer of an image that was unpacked, and the first id of the box for one that was
// made of a box's disk. The owner of the layer's own directory tells it, because a box
// can give that directory to no one but its own users.
func Base(dir *os.File) (int, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return 0, fmt.Errorf("layer %s: %w", dir.Name(), err)
	}
	return int(st.Uid) / IDsPerBox * IDsPerBox, nil
}

// diskMark is the attribute of a layer that is the disk of a box with a size: an ext4
// file system in the file [DiskFile].
const diskMark = "trusted.sandbox.disk"

// DiskFile is the name of the disk of a box with a size, in the box's directory and in a
// layer that was made of it.
const DiskFile = "disk"

// MarkDisk marks the layer in dir as the disk of a box. Errors: Storage.
func MarkDisk(dir string) error {
	if err := unix.Setxattr(dir, diskMark, []byte("1"), 0); err != nil {
		return fault.Disk(err, "mark a layer")
	}
	return nil
}

// IsDisk reports whether the layer in dir is the disk of a box.
func IsDisk(dir string) bool {
	_, err := unix.Getxattr(dir, diskMark, nil) // in the home of a user who is not root, no layer has it
	return err == nil
}
