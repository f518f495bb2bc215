package main

// #include "glue.h"
import "C"

import (
	"io"
	"sync"
	"unsafe"

	"github.com/mattn/go-pointer"

	"sandbox/core/fault"
)

// handle is the value that C holds: an address that identifies a cell. It is
// not a Go pointer, so whatever value C passes can't confuse the garbage
// collector.
type handle uintptr

// cell is what a handle refers to. go-pointer owns the address. A released cell
// keeps its address and is empty, because the allocator would reuse a freed
// address at once: releasing the same box a second time would then release
// another one.
type cell struct {
	value any // nil after the release
	owner *cell
	owned map[handle]*cell // released together with this one
}

// tombstones is how many released handles keep their addresses, so that they
// can be told from live ones.
const tombstones = C.RELEASED_HANDLES

// handles guards every cell, and the list of released handles that C keeps.
var handles sync.RWMutex

// put returns a new handle for value. It fails if the owner was released
// meanwhile.
func put(value any, owner handle) (handle, error) {
	handles.Lock()
	defer handles.Unlock()
	if owner == 0 {
		return add(value, nil), nil
	}
	o := owner.cell()
	if o == nil {
		return 0, fault.New(fault.InvalidArgument, "the runtime was released during the call")
	}
	return add(value, o), nil
}

// putBeside returns a new handle for value, with the owner of h. It fails if h
// was released meanwhile.
func putBeside(value any, h handle) (handle, error) {
	handles.Lock()
	defer handles.Unlock()
	c := h.cell()
	if c == nil {
		return 0, fault.New(fault.InvalidArgument, "the box's handle was released during the call")
	}
	return add(value, c.owner), nil
}

// add makes a cell, which owner owns unless it is nil. handles is locked.
func add(value any, owner *cell) handle {
	c := &cell{value: value, owner: owner, owned: map[handle]*cell{}}
	h := handle(pointer.Save(c))
	if owner != nil {
		owner.owned[h] = c
	}
	return h
}

// get returns the value that h refers to. Errors: InvalidArgument, naming the
// parameter.
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

// take releases h and all handles that it owns, closes the values of the owned
// ones that can be closed, and returns the value that h referred to. It does
// nothing if h is NULL, was released, or refers to a value of another type.
func take[T any](h handle) (v T, ok bool) {
	v, owned, ok := release[T](h)
	for _, value := range owned {
		if c, ok := value.(io.Closer); ok {
			_ = c.Close() // a release has nobody to report to
		}
	}
	return v, ok
}

// release is take without the closing, for which the handles must not be locked.
func release[T any](h handle) (v T, owned []any, ok bool) {
	handles.Lock()
	defer handles.Unlock()
	c := h.cell()
	if c == nil {
		return v, nil, false
	}
	if v, ok = c.value.(T); !ok {
		return v, nil, false
	}
	for child, cell := range c.owned {
		owned = append(owned, cell.value)
		bury(child, cell)
	}
	if c.owner != nil {
		delete(c.owner.owned, h)
	}
	bury(h, c)
	return v, owned, true
}

// bury empties a cell and keeps its address among the released ones. When there
// are too many of these, it frees the oldest.
func bury(h handle, c *cell) {
	*c = cell{}
	if oldest := C.keep_released(h.address()); oldest != nil {
		pointer.Unref(oldest)
	}
}

// cell returns the live cell that h refers to, or nil. handles is locked.
func (h handle) cell() *cell {
	if c, ok := pointer.Restore(h.address()).(*cell); ok && c.value != nil {
		return c
	}
	return nil
}

// address returns h in the form that go-pointer takes. An address in the first
// page becomes nil: no handle lies there, and Go's stack check would end the
// process because of a pointer into that page.
func (h handle) address() unsafe.Pointer {
	if h < 4096 {
		return nil
	}
	return *(*unsafe.Pointer)(unsafe.Pointer(&h))
}
