package kubernetes

import (
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// copies is what this process knows of the objects of one kind: copies that a watch keeps
// up to date, and into which this process puts what it changes itself, so that it sees its
// own changes at once. It implements [cache.ReflectorStore].
type copies[O object] struct {
	*news                     // of all kinds, for those who wait for a change of a box
	key   func(O) string      // what an object is found by
	seen  func(before, now O) // told of each object that is new or another, with mu held; before is the zero value for a new one

	mu     sync.Mutex
	byKey  map[string]O            // nobody changes these
	ended  endings                 // of those that were deleted
	since  map[types.UID]time.Time // when this process first saw each: clocks differ
	whole  bool                    // all objects are here
	failed error                   // of the first try to list or watch that failed since one worked: the next try asks otherwise
}

func newCopies[O object](n *news, key func(O) string) *copies[O] {
	return &copies[O]{news: n, key: key, seen: func(O, O) {}, byKey: map[string]O{}, since: map[types.UID]time.Time{}}
}

// nameOf returns the key of objects that are found by their names.
func nameOf[O object](o O) string { return o.GetName() }

// note notes how a request went.
func (c *copies[O]) note(err error) {
	c.mu.Lock()
	if err == nil || c.failed == nil {
		c.failed = err
	}
	c.mu.Unlock()
	c.tell()
}

// known returns whether all objects are here, or why they could not be had.
func (c *copies[O]) known() (whole bool, failed error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.whole {
		return true, nil
	}
	return false, c.failed
}

// lost returns why this process does not see changes now, or nil.
func (c *copies[O]) lost() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// at returns the object of a key, or the zero value.
func (c *copies[O]) at(key string) O {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey[key]
}

// all returns the objects that want returns true for.
func (c *copies[O]) all(want func(O) bool) (found []O) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.byKey {
		if want(o) {
			found = append(found, o)
		}
	}
	return found
}

// age returns for how long this process has seen an object.
func (c *copies[O]) age(o O) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.since[o.GetUID()])
}

// put takes in an object as the API server has answered it.
func (c *copies[O]) put(o O) {
	o.SetManagedFields(nil) // half of a pod's bytes, and of no use here
	c.mu.Lock()
	key := c.key(o)
	before, known := c.byKey[key]
	fresh := !c.ended.covers(o) && (!known || before.GetUID() != o.GetUID() || version(before) < version(o))
	if fresh {
		c.see(before, known, o)
		c.byKey[key] = o
	}
	c.mu.Unlock()
	if fresh {
		c.tell()
	}
}

// see notes what is new about an object. c.mu is held.
func (c *copies[O]) see(before O, known bool, now O) {
	if !known || before.GetUID() != now.GetUID() {
		var none O
		before = none
		c.since[now.GetUID()] = time.Now()
	}
	c.seen(before, now)
}

// drop forgets an object that the API server has deleted.
func (c *copies[O]) drop(o O) {
	c.mu.Lock()
	key := c.key(o)
	now, known := c.byKey[key]
	gone := known && now.GetUID() == o.GetUID()
	if gone {
		delete(c.byKey, key)
		delete(c.since, o.GetUID())
	}
	c.mu.Unlock()
	if gone {
		c.tell()
	}
}

// leave notes that an object is being deleted, before the watch tells so.
func (c *copies[O]) leave(o O) {
	c.mu.Lock()
	key := c.key(o)
	now, known := c.byKey[key]
	if known && now.GetUID() == o.GetUID() && now.GetDeletionTimestamp() == nil {
		if leaving, ok := now.DeepCopyObject().(O); ok {
			at := metav1.Now()
			leaving.SetDeletionTimestamp(&at)
			c.byKey[key] = leaving
		}
	}
	c.mu.Unlock()
	c.tell()
}

// version returns the version of an object, which grows with each change of it:
// Kubernetes promises so since 1.35.
func version(o metav1.Object) uint64 {
	n, _ := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	return n
}

// endings are the last versions of objects that the watch has told the end of: an answer of
// the API server may come later, and is of a version before. They are kept for endingsTime at
// least. The zero value is ready.
type endings struct {
	last, before map[types.UID]uint64
	began        time.Time // of last
}

const endingsTime = 10 * time.Minute

func (e *endings) note(o metav1.Object) {
	if time.Since(e.began) > endingsTime {
		e.last, e.before, e.began = map[types.UID]uint64{}, e.last, time.Now()
	}
	e.last[o.GetUID()] = version(o)
}

// covers reports whether this version of an object is none after its end.
func (e *endings) covers(o metav1.Object) bool {
	at, known := e.last[o.GetUID()]
	if !known {
		at, known = e.before[o.GetUID()]
	}
	return known && version(o) <= at
}

// Add implements [cache.ReflectorStore].
func (c *copies[O]) Add(o any) error { return c.Update(o) }

// Update implements [cache.ReflectorStore].
func (c *copies[O]) Update(o any) error {
	if is, ok := o.(O); ok {
		c.put(is)
	}
	return nil
}

// Delete implements [cache.ReflectorStore].
func (c *copies[O]) Delete(o any) error {
	if is, ok := o.(O); ok {
		c.mu.Lock()
		c.ended.note(is)
		c.mu.Unlock()
		c.drop(is)
	}
	return nil
}

// Replace implements [cache.ReflectorStore]. What this process made while the list was
// on its way is in a later version, and stays.
func (c *copies[O]) Replace(list []any, at string) error {
	listed := map[string]O{}
	for _, o := range list {
		if is, ok := o.(O); ok {
			is.SetManagedFields(nil)
			listed[c.key(is)] = is
		}
	}
	then, _ := strconv.ParseUint(at, 10, 64)
	c.mu.Lock()
	for key, o := range c.byKey {
		if version(o) > then {
			listed[key] = o
		}
	}
	since := c.since
	c.since = map[types.UID]time.Time{}
	for key, o := range listed {
		before, known := c.byKey[key]
		c.see(before, known, o)
		if first, ok := since[o.GetUID()]; ok {
			c.since[o.GetUID()] = first
		}
	}
	c.byKey, c.whole, c.failed = listed, true, nil
	c.mu.Unlock()
	c.tell()
	return nil
}

// Resync implements [cache.ReflectorStore].
func (*copies[O]) Resync() error { return nil }
