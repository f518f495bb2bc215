package layer

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// Nobody waits for the disk to take a layer: [Flush] has it do so afterwards.
// Until then a power cut may leave any part of it. So each layer has a mark
// that names the boot it was made in, or says that the disk has it. It is an
// attribute of the directory, which goes where that goes; no tar can set it.
const (
	bootMark = "trusted.sandbox.boot"
	onDisk   = "on disk"
)

// Temporary begins the names of what stands among layers and is none, or is
// none any more. Whoever sweeps the directory deletes it.
const Temporary = "tmp-"

// MarkNew marks the layer in dir as one that was just made. Errors: Storage.
func MarkNew(dir string) error {
	boot, err := bootID()
	if err != nil {
		return err
	}
	if err := unix.Setxattr(dir, bootMark, []byte(boot), 0); err != nil {
		return refusedAttribute(filepath.Base(dir), err)
	}
	return nil
}

// Whole tells whether the layer in dir is there as it was made: the power was
// not cut before the disk had it.
func Whole(dir string) bool {
	switch mark := readMark(dir); mark {
	case onDisk:
		return true
	case "":
		return false
	default:
		boot, err := bootID()
		return err == nil && mark == boot
	}
}

// OnDisk tells whether the disk has the layer in dir.
func OnDisk(dir string) bool { return readMark(dir) == onDisk }

// Flush has the disk take the layers in a directory, and notes that it did. Layers
// may be made and taken away meanwhile. Errors: Storage.
func Flush(dir string) error {
	fresh, err := layers(dir, func(dir string) bool { return Whole(dir) && !OnDisk(dir) })
	if err != nil || len(fresh) == 0 {
		return err
	}
	var open []*os.File // the very ones: another may have the name by the end
	defer func() {
		for _, f := range open {
			_ = f.Close()
		}
	}()
	for _, dir := range fresh {
		f, err := os.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fault.Disk(err, "write a layer to disk")
		}
		open = append(open, f)
	}
	for i, f := range open {
		if i == 0 {
			err = unix.Syncfs(int(f.Fd()))
		}
		if err == nil {
			err = unix.Fsetxattr(int(f.Fd()), bootMark, []byte(onDisk), unix.XATTR_REPLACE)
		}
		if err != nil {
			return fault.Disk(err, "write layer %s to disk", filepath.Base(f.Name()))
		}
	}
	return nil
}

// Sweep takes away the layers in a directory that a power cut may have damaged:
// who needs one finds none, and makes it anew. Errors: Storage.
func Sweep(dir string) error {
	damaged, err := layers(dir, func(dir string) bool { return !Whole(dir) })
	if err != nil {
		return err
	}
	for _, path := range damaged {
		err := os.Rename(path, filepath.Join(dir, Temporary+"damaged-"+rand.Text()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Disk(err, "take a damaged layer away")
		}
	}
	return nil
}

// layers returns those in a directory that ok takes.
func layers(dir string, ok func(dir string) bool) ([]string, error) {
	all, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Disk(err, "list layers")
	}
	var dirs []string
	for _, e := range all {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() && !strings.HasPrefix(e.Name(), Temporary) && ok(path) {
			dirs = append(dirs, path)
		}
	}
	return dirs, nil
}

// readMark returns a layer's mark, "" if it has none.
func readMark(dir string) string {
	var mark [64]byte
	n, err := unix.Getxattr(dir, bootMark, mark[:])
	if err != nil {
		return ""
	}
	return string(mark[:n])
}

// bootID names the present run of the kernel.
func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fault.Disk(err, "tell which boot this is")
	}
	return string(bytes.TrimSpace(id)), nil
}
