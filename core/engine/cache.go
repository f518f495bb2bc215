package engine

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/ids"
	"sandbox/core/store"
)

// cache keeps the records of a home in memory, for a process that needs them
// all the time. One system call tells whether they are still up to date: the
// kernel queues the change of a record (inotify) before the call that made the
// change returns, in whichever process, and it also reports the end of a box's
// init (pidfd). When no watch can be set up, records are read from disk.
type cache struct {
	dir store.Dir[record.Box]

	mu     sync.Mutex
	closed bool   // nothing is watched any more: who still asks reads the disk
	watch  *watch // nil until needed, and after a failure
	boxes  map[string]cached
	list   []core.Record // of boxes, newest first; handed out and never changed
}

type cached struct {
	box record.Box
	fd  int // the pidfd of a running box's init, or -1
}

// all returns all records, newest first.
func (c *cache) all() ([]core.Record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(); err != nil {
		c.forget()
		return readAll(c.dir)
	}
	return c.list, nil
}

// get returns one record and whether it is in the cache.
func (c *cache) get(id string) (record.Box, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(); err != nil {
		c.forget()
		return record.Box{}, false
	}
	b, ok := c.boxes[id]
	return b.box, ok
}

// each calls f with each record of the cache. It returns false if the cache can't
// be brought up to date.
func (c *cache) each(f func(record.Box)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(); err != nil {
		c.forget()
		return false
	}
	for _, b := range c.boxes {
		f(b.box)
	}
	return true
}

func (c *cache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.forget()
}

// forget drops everything and closes the watch. c.mu is held.
func (c *cache) forget() {
	for _, b := range c.boxes {
		closeNumber(b.fd)
	}
	if c.watch != nil {
		c.watch.close()
	}
	c.watch, c.boxes, c.list = nil, nil, nil
}

// refresh brings the records up to date. c.mu is held.
func (c *cache) refresh() error {
	if c.closed {
		return os.ErrClosed
	}
	if c.watch == nil {
		return c.load()
	}
	changed, whole, err := c.watch.changes()
	if err != nil {
		return err
	}
	if whole {
		c.forget()
		return c.load()
	}
	for _, key := range changed {
		if err := c.read(key); err != nil {
			return err
		}
	}
	if len(changed) > 0 {
		c.sort()
	}
	return nil
}

// load reads all records. It sets up the watch before it reads the first one,
// so that no change is missed.
func (c *cache) load() (err error) {
	if err := os.MkdirAll(c.dir.Path, 0o700); err != nil {
		return err
	}
	if c.watch, err = newWatch(c.dir.Path); err != nil {
		return err
	}
	c.boxes = map[string]cached{}
	entries, err := os.ReadDir(c.dir.Path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if key, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			if err := c.read(key); err != nil {
				return err
			}
		}
	}
	c.sort()
	return nil
}

// read reads one record again, because the record has changed or because the
// box's init has ended.
func (c *cache) read(key string) error {
	if old, ok := c.boxes[key]; ok {
		closeNumber(old.fd) // closing it also removes it from the watch
		delete(c.boxes, key)
	}
	if !ids.Box.Valid(key) {
		return nil
	}
	b, err := c.dir.Get(key)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if errors.Is(err, store.ErrDamaged) {
		b, err = record.OfDamaged(c.dir.Damage(key, err)), nil
	}
	if err != nil {
		return err // perhaps out of descriptors: the box's state is unknown
	}
	entry := cached{box: b, fd: -1}
	if b.Status.Up() {
		entry.fd, err = c.watch.process(b.Init, key)
		if err != nil {
			return err
		}
		entry.box.Correct() // after the watch, which reports any later end
	}
	c.boxes[key] = entry
	return nil
}

func (c *cache) sort() {
	c.list = make([]core.Record, 0, len(c.boxes))
	for b := range maps.Values(c.boxes) {
		c.list = append(c.list, b.box.Record)
	}
	slices.SortFunc(c.list, newestFirst)
}
