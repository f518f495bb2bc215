package main

// #include "glue.h"
import "C"

import (
	"sync"
	"unsafe"

	"github.com/mattn/go-pointer"

	"sandbox/core/fault"
)

// handle is what C holds: an address that names a cell. It is no Go pointer,
// so whatever C passes can't confuse the garbage collector.
type handle uintptr

// cell is what a handle names. go-pointer keeps the address; a released cell
// stays at it, empty, because the allocator hands a freed address out again at
// once: a second release of one box would then release another.
type cell struct {
	value any // nil once released
	owner *cell
	owned map[handle]*cell // released together with this one
}

// tombstones is how many released handles are told from live ones.
const tombstones = C.RELEASED_HANDLES

// handles guards every cell, and what C keeps of those released.
var handles sync.RWMutex

// put makes a handle for value. It fails if the owner was released meanwhile.
func put(value any, owner handle) (handle, error) {
	handles.Lock()
	defer handles.Unlock()
	c := &cell{value: value, owned: map[handle]*cell{}}
	if owner != 0 {
		if c.owner = owner.cell(); c.owner == nil {
			return 0, fault.New(fault.InvalidArgument, "the runtime was released during the call")
		}
	}
	h := handle(pointer.Save(c))
	if c.owner != nil {
		c.owner.owned[h] = c
	}
	return h, nil
}

// get returns what h names. Errors: InvalidArgument, naming the parameter.
func get[T any](h handle, parameter string) (T, error) {
	handles.RLock()
	defer handles.RUnlock()
	if c := h.cell(); c != nil {
		if v, ok := c.value.(T); ok {
			return v, nil
		}
	}
	var none T
	if h == 0 {
		return none, null(parameter)
	}
	return none, fault.New(fault.InvalidArgument, "%s is not a live handle", parameter)
}

// take releases h and all that it owns, and gives what it named. It does
// nothing if h is NULL, was released, or names something else.
func take[T any](h handle) (v T, ok bool) {
	handles.Lock()
	defer handles.Unlock()
	c := h.cell()
	if c == nil {
		return v, false
	}
	if v, ok = c.value.(T); !ok {
		return v, false
	}
	for child, owned := range c.owned {
		bury(child, owned)
	}
	if c.owner != nil {
		delete(c.owner.owned, h)
	}
	bury(h, c)
	return v, true
}

// bury empties a cell and gives the address of the oldest one back.
func bury(h handle, c *cell) {
	*c = cell{}
	if oldest := C.keep_released(h.address()); oldest != nil {
		pointer.Unref(oldest)
	}
}

// cell returns the live cell that h names, or nil. handles is locked.
func (h handle) cell() *cell {
	if c, ok := pointer.Restore(h.address()).(*cell); ok && c.value != nil {
		return c
	}
	return nil
}

// address returns h as go-pointer wants it. The first page is never an address;
// Go's stack check ends the process over a pointer into it.
func (h handle) address() unsafe.Pointer {
	if h < 4096 {
		return nil
	}
	return *(*unsafe.Pointer)(unsafe.Pointer(&h))
}
