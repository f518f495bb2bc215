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
	unwritten = ".unwritten" // of a delta that is being written
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
		_ = v.dir.RemoveAll(nameOf(v.life, unwritten))
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			return fault.Wrap(fault.Storage, err, "the box's claim has no room for what the box has changed: remove files of the box")
		}
		return failed(err, "save the disk of the box in %.200q", v.dir.Name())
	}
	return failed(v.removeBefore(suffix), "remove what was saved before in %.200q", v.dir.Name())
}

// removeBefore removes the files with an ending that lives before this one have left.
func (v *Volume) removeBefore(ending string) error {
	lives, err := v.lives(ending)
	for _, life := range lives {
		if life < v.life {
			err = errors.Join(err, v.dir.RemoveAll(nameOf(life, ending)))
		}
	}
	return err
}

func (v *Volume) write(root, image *os.File, since time.Time) error {
	to, err := v.create()
	if err != nil {
		return err
	}
	err = Save(to, root, image, since)
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		return err
	}
	return v.publish()
}

// create creates the file that the delta is written to. It has a name of this life's own,
// so that a life that ends late neither publishes this one nor has its own replaced. What
// lives before have left was not finished, or would be older than this: it goes first,
// because the volume may not have room for both.
func (v *Volume) create() (*os.File, error) {
	name := nameOf(v.life, unwritten)
	if err := errors.Join(v.removeBefore(unwritten), v.dir.RemoveAll(name)); err != nil {
		return nil, err
	}
	return v.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// publish makes the delta that was written the one of this life.
func (v *Volume) publish() error {
	if err := v.dir.Rename(nameOf(v.life, unwritten), nameOf(v.life, suffix)); err != nil {
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
	lives, err := v.lives(suffix)
	if err != nil {
		return err
	}
	from, err := v.latest(lives)
	if from == nil || err != nil {
		return err
	}
	defer from.Close()
	return Restore(from, root)
}

// latest opens what the latest of lives has saved, up to this one: nil if none has. Since
// the lives were listed, one that ended late may have put a later delta in its place.
func (v *Volume) latest(lives []int) (*os.File, error) {
	for tried := 0; ; {
		latest := 0
		for _, life := range lives {
			if life <= v.life {
				latest = max(latest, life)
			}
		}
		if latest == 0 && tried == 0 {
			return nil, nil
		}
		from, err := v.dir.Open(nameOf(latest, suffix))
		if !errors.Is(err, fs.ErrNotExist) || latest <= tried {
			return from, failed(err, "open the saved disk of the box in %.200q", v.dir.Name())
		}
		tried = latest
		if lives, err = v.lives(suffix); err != nil {
			return nil, err
		}
	}
}

func nameOf(life int, ending string) string { return strconv.Itoa(life) + ending }

// lives returns the lives of which there are files with an ending.
func (v *Volume) lives(ending string) (lives []int, err error) {
	entries, err := fs.ReadDir(v.dir.FS(), ".")
	if err != nil {
		return nil, failed(err, "read the volume of the box's disk in %.200q", v.dir.Name())
	}
	for _, e := range entries {
		if number, is := strings.CutSuffix(e.Name(), ending); is {
			if life, err := strconv.Atoi(number); err == nil {
				lives = append(lives, life)
			}
		}
	}
	return lives, nil
}
