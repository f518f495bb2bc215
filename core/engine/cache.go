package engine

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/ids"
	"sandbox/core/store"
)

// cache keeps the records of a home in memory for a process that is asked for
// them all the time. One system call tells whether they are still true: the
// kernel has queued the change of a record before the call that made it
// returns, whichever process that was (inotify), and the end of a box's init
// too (pidfd). Where there is no watch to be had, records are read anew.
type cache struct {
	dir store.Dir[record.Box]

	mu    sync.Mutex
	watch *watch // nil until needed, and after a failure
	boxes map[string]cached
	list  []core.Record // of boxes, newest first; handed out and never changed
}

type cached struct {
	box record.Box
	fd  int // of the init of a running box; -1 for none
}

// all returns all records.
func (c *cache) all() ([]core.Record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(); err != nil {
		c.forget()
		return readAll(c.dir)
	}
	return c.list, nil
}

// get returns one record, if it is there.
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

func (c *cache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
}

// forget drops everything.
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

// load reads all records, with the watch in place before the first one is read.
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

// read reads one record anew; also when it is the end of its init that is new.
func (c *cache) read(key string) error {
	if old, ok := c.boxes[key]; ok {
		closeNumber(old.fd) // leaves the watch with that
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
		b, err = record.OfDamaged(store.Damaged{Key: key, At: time.Now(), Err: err}), nil
	}
	if err != nil {
		return err // for want of descriptors, perhaps: nothing is known
	}
	entry := cached{box: b, fd: -1}
	if b.Status == api.Running {
		entry.fd, err = c.watch.process(b.Init, key)
		if err != nil {
			return err
		}
		entry.box.Correct() // after the watch: an end from here on is seen
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
