package layer

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/userns"
)

// Making a layer does not wait until the disk has it; [Flush] writes it to disk
// afterwards. Until then a power cut may leave any part of it. So each layer
// has a mark that names the boot in which it was made, or says that it is on
// disk. The mark is an extended attribute of the directory, so it stays with
// the directory when that is renamed; no tar can set it.
const (
	onDisk  = "on disk"
	boxDisk = "disk of a box " // with the boot behind it
)

// bootMark is the name of the attribute. A user who is not root of the host can't set a
// trusted one, and has one of the user's own, which no tar can set either.
var bootMark = markName("boot")

// ownMarks is the beginning of the names of attributes that no tar and no copy can set.
const ownMarks = "user.sandbox."

func markName(name string) string {
	if os.Geteuid() == 0 && userns.Host() {
		return "trusted.sandbox." + name
	}
	return ownMarks + name
}

// Temporary is the prefix of the names of directory entries that are not
// layers, or not any more. A sweep of the directory deletes them.
const Temporary = "tmp-"

// MarkNew marks the layer in dir as one that was made in this boot. Errors:
// Storage.
func MarkNew(dir string) error { return mark(dir, "") }

// MarkBox marks the layer in dir as one that was made in this boot of the disk of a box,
// which stands on it from then on. Such a layer is kept after a power cut, as the disk of
// any box is, though an image no longer counts it as whole. Errors: Storage.
func MarkBox(dir string) error { return mark(dir, boxDisk) }

func mark(dir, kind string) error {
	id, err := bootID()
	if err != nil {
		return err
	}
	if err := unix.Setxattr(dir, bootMark, []byte(kind+id), 0); err != nil {
		return refusedAttribute(filepath.Base(dir), err)
	}
	return nil
}

// Whole reports whether the layer in dir is as it was made, that is, whether
// the power was not cut before it was on disk. A layer that can't be examined does
// not count as whole.
func Whole(dir string) bool {
	mark, err := readMark(dir)
	if err != nil {
		return false
	}
	whole, err := isWhole(mark)
	return whole && err == nil
}

// isWhole reports whether a layer with this mark is whole. Errors: Storage.
func isWhole(mark string) (bool, error) {
	if mark == onDisk || mark == "" {
		return mark == onDisk, nil
	}
	id, err := bootID()
	return err == nil && strings.TrimPrefix(mark, boxDisk) == id, err
}

// OnDisk reports whether the layer in dir is known to be on disk.
func OnDisk(dir string) bool {
	mark, err := readMark(dir)
	return mark == onDisk && err == nil
}

// damaged reports whether a power cut may have damaged the layer in dir, unless it is the
// disk of a box, which is kept all the same. Errors: Storage.
func damaged(dir string) (bool, error) {
	mark, err := readMark(dir)
	if err != nil {
		return false, err
	}
	whole, err := isWhole(mark)
	return err == nil && !whole && !strings.HasPrefix(mark, boxDisk), err
}

// Flush writes the layers in a directory to disk and marks them as written.
// Layers may be made and removed meanwhile. Errors: Storage.
func Flush(dir string) error {
	fresh, err := layers(dir, func(dir string) bool { return Whole(dir) && !OnDisk(dir) })
	if err != nil || len(fresh) == 0 {
		return err
	}
	var open []*os.File // kept open, as another layer may get the name meanwhile
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

// Sweep removes the layers in a directory that a power cut may have damaged.
// They then count as missing, and are made anew when they are needed. A layer that
// can't be examined, for lack of a descriptor for example, stays. Errors: Storage.
func Sweep(dir string) error {
	var unknown error
	lost, err := layers(dir, func(dir string) bool {
		lost, err := damaged(dir)
		unknown = cmp.Or(unknown, err)
		return lost
	})
	if err := cmp.Or(err, unknown); err != nil {
		return err
	}
	for _, path := range lost {
		err := os.Rename(path, filepath.Join(dir, Temporary+"damaged-"+rand.Text()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Disk(err, "remove a damaged layer")
		}
	}
	return nil
}

// layers returns the paths of the layers in a directory for which ok returns
// true.
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

// readMark returns a layer's mark, or "" if it has none or is not there. Errors: Storage.
func readMark(dir string) (string, error) {
	var mark [128]byte
	n, err := unix.Getxattr(dir, bootMark, mark[:])
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fault.Disk(err, "examine layer %s", filepath.Base(dir))
	}
	return string(mark[:n]), nil
}

// boot remembers the ID of the present boot, so that layers can be told from damaged ones
// when no descriptor is free.
var boot atomic.Pointer[string]

// bootID returns an ID of the present boot of the kernel.
func bootID() (string, error) {
	if id := boot.Load(); id != nil {
		return *id, nil
	}
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fault.Disk(err, "read the id of this boot")
	}
	id := string(bytes.TrimSpace(data))
	boot.Store(&id)
	return id, nil
}
