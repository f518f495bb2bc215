package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/fault"
)

// fill ends the spares that are not wanted, and makes those that are missing, one
// after another, until there is something else to do. After a failure, and where
// the host is short of what spares need, the pool stays empty until the next create.
func (k *keeper) fill() {
	k.pool.filling.Lock()
	defer k.pool.filling.Unlock()
	for {
		if exhausted(k.home) != "" || shortOfMemory() {
			k.discard(k.pool.empty()...)
		}
		next, unwanted := k.pool.plan()
		k.discard(unwanted...)
		if next == nil {
			return
		}
		if err := errors.Join(k.watchLayers(), k.make(next)); err != nil {
			k.log.Error("make a spare", "error", err)
			k.discard(k.pool.empty()...)
			return
		}
	}
}

// shortOfMemory reports whether programs can have less than a 16th of the host's
// memory.
func shortOfMemory() bool {
	text, _ := os.ReadFile("/proc/meminfo") // without it nothing is known to be short
	var total, available int64
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "MemTotal: %d kB", &total) // other lines have neither
		_, _ = fmt.Sscanf(line, "MemAvailable: %d kB", &available)
	}
	return available < total/16
}

// watchLayers has the pool looked at whenever a layer of the home was removed: a
// spare that stands on it would keep its space on the disk. It does so once, and
// only where there are layers. k.pool.filling is held.
func (k *keeper) watchLayers() error {
	if k.pool.layers != nil || !exists(k.layers()) {
		return nil
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, k.layers(), unix.IN_MOVED_FROM|unix.IN_DELETE|unix.IN_ONLYDIR); err != nil {
		return errors.Join(err, f.Close())
	}
	k.pool.layers = f
	go func() {
		for buf := make([]byte, 4096); ; { // a few events; what does not fit is read next
			if _, err := f.Read(buf); err != nil {
				return // closePool has closed it
			}
			k.pool.stir()
		}
	}()
	return nil
}

// makeFor makes a spare for a request unless there is one. It is for tests, which
// can so make each box of a spare.
func (k *keeper) makeFor(req core.CreateRequest) {
	k.pool.filling.Lock()
	defer k.pool.filling.Unlock()
	if s := k.pool.missing(req); s != nil {
		if err := k.make(s); err != nil {
			k.log.Error("make a spare", "error", err)
		}
	}
}

// make makes a spare that is in the pool. On failure nothing of it is left.
func (k *keeper) make(s *spare) error {
	dir := record.Dir(k.home, s.slot)
	err := errors.Join(k.place(s), makeDirs(dir))
	if err == nil && s.shape.layers == "" {
		err = makeDirs(filepath.Join(dir, emptyLayer))
	}
	if err == nil {
		s.layers = inodes(s.shape.paths())
		var f *life
		if f, err = k.launcher.spare(s.record(dir)); err == nil {
			k.pool.made(s, f)
			return nil
		}
	}
	err = errors.Join(err, os.RemoveAll(dir))
	k.pool.drop(s)
	return err
}

// place gives a spare a range of ids.
func (k *keeper) place(s *spare) (err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.base, err = k.freeRange()
	return err
}

// claim makes a spare the box of rec. Its init has yet to be heard, so that it works
// while the record is written. On failure nothing is left of the spare but the box's
// directory.
func (k *keeper) claim(s *spare, rec record.Box) (*life, error) {
	err := os.Rename(record.Dir(k.home, s.slot), record.Dir(k.home, rec.ID))
	if err == nil && s.reroot {
		err = k.launcher.reroot(s.life, rec)
	}
	if err == nil {
		err = publish(s.life.net, rec.Options.Ports)
	}
	if err != nil {
		k.discard(s)
		return nil, err
	}
	return s.life, k.launcher.tell(s.life, rec)
}

// standing refuses a box whose image was removed while the box was made. The record of a
// box keeps its layers from then on, but that of one which is made of a spare is written
// after they were mounted.
func standing(rec record.Box) error {
	if slices.Contains(inodes(rec.Layers()), inode{}) {
		return fault.New(fault.Image, "image %q was removed while the box was made", rec.Options.Image)
	}
	return nil
}

// discard ends spares that are not in the pool any more.
func (k *keeper) discard(spares ...*spare) {
	for _, s := range spares {
		k.launcher.end(s.life)
		if err := os.RemoveAll(record.Dir(k.home, s.slot)); err != nil {
			k.log.Error("remove a spare", "slot", s.slot, "error", err)
		}
	}
}

// relieve ends all spares if err says that something is short, which they may hold.
// It reports whether there were any, so that another try may work.
func (k *keeper) relieve(err error) bool {
	if !fault.Is(err, fault.ResourceExhausted) && !fault.Is(err, fault.Storage) {
		return false
	}
	return k.endSpares()
}

// endSpares ends all spares, and reports whether there were any.
func (k *keeper) endSpares() bool {
	k.pool.filling.Lock()
	defer k.pool.filling.Unlock()
	all := k.pool.empty()
	k.discard(all...)
	return len(all) > 0
}

// closePool ends the pool and all spares.
func (k *keeper) closePool() {
	k.pool.close()
	k.endSpares()
	if k.pool.layers != nil {
		_ = k.pool.layers.Close()
	}
}
