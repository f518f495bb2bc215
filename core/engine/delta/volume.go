package delta

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// Volume is the directory in which the deltas of a box are. Each life of the box, from a
// start to an end, has a file of its own: so one that ends late, on a node that was taken
// for lost, does not undo what the next has saved.
type Volume struct {
	dir  *os.Root
	life int
}

const (
	suffix    = ".delta"
	unwritten = "unwritten" // a delta that is being written
)

// OpenVolume opens the directory for the life of a box, which is at least 1.
func OpenVolume(path string, life int) (*Volume, error) {
	dir, err := os.OpenRoot(path)
	if err != nil {
		return nil, fault.Wrap(fault.Storage, err, "open the volume of the box's disk")
	}
	return &Volume{dir, life}, nil
}

// Save saves what differs below root from what is below image since a time; see [Save].
// Either all of it is on the disk when Save returns, or the volume has what it had before.
// Errors: Storage.
func (v *Volume) Save(root, image *os.File, since time.Time) error {
	err := v.write(root, image, since)
	if err != nil {
		_ = v.dir.RemoveAll(unwritten)
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			return fault.Wrap(fault.Storage, err, "the box's claim has no room for what the box has changed: remove files of the box")
		}
		return failed(err, "save the disk of the box in %.200q", v.dir.Name())
	}
	lives, err := v.lives()
	for _, life := range lives {
		if life < v.life {
			err = errors.Join(err, v.dir.RemoveAll(nameOf(life)))
		}
	}
	return failed(err, "remove what was saved before in %.200q", v.dir.Name())
}

func (v *Volume) write(root, image *os.File, since time.Time) error {
	if err := v.dir.RemoveAll(unwritten); err != nil { // of a life that was killed while it wrote
		return err
	}
	to, err := v.dir.OpenFile(unwritten, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = Save(to, root, image, since)
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		return err
	}
	if err := v.dir.Rename(unwritten, nameOf(v.life)); err != nil {
		return err
	}
	dir, err := v.dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Restore puts back what the latest life before, or this one, has saved; see [Restore]. It
// does nothing if none has. Errors: Storage.
func (v *Volume) Restore(root *os.Root) error {
	lives, err := v.lives()
	if err != nil {
		return err
	}
	latest := 0
	for _, life := range lives {
		if life <= v.life {
			latest = max(latest, life)
		}
	}
	if latest == 0 {
		return nil
	}
	from, err := v.dir.Open(nameOf(latest))
	if err != nil {
		return failed(err, "open the saved disk of the box in %.200q", v.dir.Name())
	}
	defer from.Close()
	return Restore(from, root)
}

func nameOf(life int) string { return strconv.Itoa(life) + suffix }

// lives returns the lives that have saved something.
func (v *Volume) lives() (lives []int, err error) {
	entries, err := fs.ReadDir(v.dir.FS(), ".")
	if err != nil {
		return nil, failed(err, "read the volume of the box's disk in %.200q", v.dir.Name())
	}
	for _, e := range entries {
		if number, is := strings.CutSuffix(e.Name(), suffix); is {
			if life, err := strconv.Atoi(number); err == nil {
				lives = append(lives, life)
			}
		}
	}
	return lives, nil
}
