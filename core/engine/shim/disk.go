package shim

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/record"
	"sandbox/core/fault"
	"sandbox/core/image/layer"
)

// mountDisk mounts the disk of a box whose writable layer has a size limit. The
// disk is an ext4 file system in a sparse file, which takes up on the host only
// what was written and not removed. Nothing but the mount keeps the loop device
// in use, so the kernel frees the device with the mount: however the box ends,
// nothing is left to be detached.
func (t *tree) mountDisk(dir string, sizeGB int) error {
	if asUser {
		return errDisk()
	}
	image, made, err := openDisk(filepath.Join(dir, layer.DiskFile), sizeGB)
	if err != nil {
		return err
	}
	defer image.Close()
	if err := mountDisk(image, made, t.root, 0); err != nil {
		return err
	}
	t.mounts++
	return nil
}

// mountDisk mounts the ext4 file system in a file, which may be mounted already. isNew says
// that it is not. flags are added to the flags of the mount.
func mountDisk(image *os.File, isNew bool, place string, flags uintptr) error {
	device, err := loopDevice(image, isNew)
	if err != nil {
		return err
	}
	defer device.Close()
	// Without noinit_itable the kernel would write zeros into the empty inode
	// tables, which read as zeros already, and so fill the host's disk.
	const options = "discard,noinit_itable,errors=remount-ro"
	err = unix.Mount(device.Name(), place, "ext4", unix.MS_NODEV|unix.MS_NOSUID|unix.MS_NOATIME|flags, options)
	if errors.Is(err, unix.ENODEV) {
		return fault.New(fault.Unsupported, "disk_size_gb: this kernel has no ext4: leave it out")
	}
	if err != nil {
		return fmt.Errorf("mount the box's disk: %w", err)
	}
	return nil
}

// errDisk refuses disks with a size where the shim is not root's.
func errDisk() error {
	return fault.New(fault.Unsupported, "disk_size_gb: a disk with a size is mounted by a loop device, which takes root: leave it out, or make the box as root")
}

// layerDisks lets one mount at a time attach the disk of a layer, so that all boxes on it
// share a loop device and a file system.
var layerDisks sync.Mutex

// mountLayerDisk mounts the disk that a layer is on the box's root, read-only.
func (t *tree) mountLayerDisk(dir string) error {
	if err := mountReadOnly(filepath.Join(dir, layer.DiskFile), t.root); err != nil {
		return err
	}
	t.mounts++
	return nil
}

// mountReadOnly mounts a disk, which may be mounted already, in the place root.
func mountReadOnly(path, root string) error {
	layerDisks.Lock()
	defer layerDisks.Unlock()
	return mountShared(path, root, unix.MS_RDONLY)
}

// mountShared mounts a disk beside other mounts of it, or alone. The file is opened for
// writing also for a read-only mount, for which the kernel may have to repeat what is in
// the disk's journal.
func mountShared(path, place string, flags uintptr) error {
	image, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fault.Disk(err, "open a disk")
	}
	defer image.Close()
	return fault.Disk(mountDisk(image, false, place, flags), "mount a disk")
}

// withDisk mounts the disk of a box, which may be in use, calls do with its root
// directory, and unmounts it.
func (k *keeper) withDisk(id string, do func(root *os.File) error) error {
	place := filepath.Join(stage, "disk-"+id)
	if err := os.MkdirAll(place, 0o700); err != nil {
		return err
	}
	defer func() { _ = os.Remove(place) }()
	if err := mountShared(filepath.Join(record.Dir(k.home, id), layer.DiskFile), place, 0); err != nil {
		return err
	}
	defer func() { _ = unix.Unmount(place, unix.MNT_DETACH) }()
	root, err := os.Open(place)
	if err != nil {
		return err
	}
	defer root.Close()
	return do(root)
}

// These have a mounted file system write all that it has to its device and stand still, and
// go on. The numbers are FIFREEZE and FITHAW of linux/fs.h.
const (
	freezeDisk = 0xc0045877
	thawDisk   = 0xc0045878
)

// copyDiskFile copies the disk of a box, whose processes stand still, to the directory to.
// The disk's file system stands still meanwhile, with nothing left in its journal.
func (k *keeper) copyDiskFile(id, to string) error {
	if err := layer.MarkDisk(to); err != nil {
		return err
	}
	return k.withDisk(id, func(root *os.File) error {
		if err := unix.IoctlSetInt(int(root.Fd()), freezeDisk, 0); err != nil {
			return fault.Disk(err, "have the disk of box %s stand still", id)
		}
		err := copyImage(filepath.Join(record.Dir(k.home, id), layer.DiskFile), filepath.Join(to, layer.DiskFile))
		if thawed := unix.IoctlSetInt(int(root.Fd()), thawDisk, 0); err == nil {
			err = fault.Disk(thawed, "let the disk of box %s go on", id)
		}
		return err
	})
}

// releaseDisk lets the file system of a box's disk go on, which a shim that was killed has left
// standing still.
func (k *keeper) releaseDisk(id string) error {
	if !exists(filepath.Join(record.Dir(k.home, id), layer.DiskFile)) {
		return nil
	}
	return k.withDisk(id, func(root *os.File) error {
		err := unix.IoctlSetInt(int(root.Fd()), thawDisk, 0)
		if errors.Is(err, unix.EINVAL) { // it does not stand still
			return nil
		}
		return err
	})
}

func copyImage(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return fault.Disk(err, "open a disk")
	}
	defer source.Close()
	st, err := source.Stat()
	if err != nil {
		return fault.Disk(err, "open a disk")
	}
	copied, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fault.Disk(err, "make a disk")
	}
	defer copied.Close()
	return layer.CopyContent(source, copied, st.Size())
}

// openDisk opens a box's disk, and makes one if the box has none. made says
// which of the two it did.
func openDisk(path string, sizeGB int) (f *os.File, made bool, err error) {
	f, err = os.OpenFile(path, os.O_RDWR, 0)
	if !errors.Is(err, os.ErrNotExist) {
		return f, false, err
	}
	// The file has another name until it is complete.
	if f, err = os.OpenFile(path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return nil, false, err
	}
	err = f.Truncate(int64(sizeGB) << 30)
	if errors.Is(err, unix.EFBIG) {
		err = fault.New(fault.Unsupported, "disk_size_gb: %d is more than a file on %s can hold", sizeGB, fileSystem(path+".new"))
	}
	if err == nil {
		err = format(path + ".new")
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, false, err
	}
	return f, true, nil
}

// format makes an ext4 file system with a journal, so that a crash loses only
// what was being written. The result does not depend on the host's mke2fs
// configuration.
func format(path string) error {
	program, err := findProgram("mkfs.ext4", "/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/sbin")
	if err != nil {
		return fault.New(fault.Unsupported, "disk_size_gb: mkfs.ext4 is not in the usual directories: install the package e2fsprogs")
	}
	cmd := exec.Command(program, "-q", "-F", "-m", "0", "-b", "4096", "-I", "256", "-i", "16384",
		"-O", "has_journal,extent,huge_file,flex_bg,metadata_csum,64bit,dir_nlink,extra_isize",
		"-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", path)
	cmd.Env = []string{"MKE2FS_CONFIG=/dev/null", "LC_ALL=C"}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("make the box's disk: mkfs.ext4: %w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

func findProgram(name string, dirs ...string) (string, error) {
	for _, dir := range dirs {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// loopTries bounds how often loopDevice tries to get a free loop device, for
// which it races with other programs on the host.
const loopTries = 64

// loopDevice returns a loop device that is attached to a disk. The kernel
// detaches it once nothing has it open and no file system on it is mounted.
func loopDevice(image *os.File, isNew bool) (*os.File, error) {
	if !isNew {
		// The kernel may not have detached the device of the box's previous
		// life yet. With a second device the disk would be mounted as two
		// file systems at once.
		if device := attached(image); device != nil {
			return device, nil
		}
	}
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, err, "disk_size_gb needs loop devices, and /dev/loop-control can't be opened")
	}
	defer control.Close()
	for range loopTries {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("find a free loop device: %w", err)
		}
		device, err := os.OpenFile("/dev/loop"+strconv.Itoa(n), os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("open a loop device: %w", err)
		}
		config := unix.LoopConfig{Fd: uint32(image.Fd()), Size: 4096}
		config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_DIRECT_IO // no second copy of the page cache
		if err = unix.IoctlLoopConfigure(int(device.Fd()), &config); err == nil {
			return device, nil
		}
		_ = device.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("attach the box's disk: %w", err)
		}
	}
	return nil, fault.New(fault.ResourceExhausted, "no loop device for the box's disk: other programs took all free ones: try again")
}

// attached returns the loop device that a disk is attached to, or nil.
func attached(image *os.File) *os.File {
	var st unix.Stat_t
	if unix.Fstat(int(image.Fd()), &st) != nil {
		return nil
	}
	inUse, _ := filepath.Glob("/sys/block/loop*/loop") // only a bad pattern fails
	for _, path := range inUse {
		device, err := os.OpenFile(filepath.Join("/dev", filepath.Base(filepath.Dir(path))), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		info, err := unix.IoctlLoopGetStatus64(int(device.Fd()))
		if err == nil && info.Device == st.Dev && info.Inode == st.Ino {
			return device
		}
		_ = device.Close()
	}
	return nil
}
