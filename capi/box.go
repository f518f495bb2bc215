package main

// #include "glue.h"
import "C"

import (
	"context"
	"unsafe"

	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

//export sandbox_create_box
func sandbox_create_box(rt *C.CSandboxRuntime, doc *C.cchar, out **C.CBoxHandle, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveBox(rt, out, cerr, func(r *core.Runtime) (*core.Box, error) { return create(r, "", doc) })
}

//export sandbox_create_named_box
func sandbox_create_named_box(rt *C.CSandboxRuntime, name, doc *C.cchar, out **C.CBoxHandle, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveBox(rt, out, cerr, func(r *core.Runtime) (*core.Box, error) {
		n, err := required(name, "name")
		if err == nil && n == "" {
			err = fault.New(fault.InvalidArgument, "name must not be empty")
		}
		if err != nil {
			return nil, err
		}
		return create(r, n, doc)
	})
}

//export sandbox_get
func sandbox_get(rt *C.CSandboxRuntime, ref *C.cchar, out **C.CBoxHandle, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveBox(rt, out, cerr, func(r *core.Runtime) (*core.Box, error) { return find(r, ref) })
}

func create(r *core.Runtime, name string, doc *C.cchar) (*core.Box, error) {
	if doc == nil {
		return nil, null("options_json")
	}
	o, err := options.Decode(document(doc))
	if err != nil {
		return nil, err
	}
	o.Name = name
	if err := o.Check(); err != nil {
		return nil, err
	}
	box, _, err := r.Create(context.Background(), o)
	return box, err
}

func find(r *core.Runtime, ref *C.cchar) (*core.Box, error) {
	name, err := required(ref, "id_or_name")
	if err != nil {
		return nil, err
	}
	return r.Get(context.Background(), name)
}

// giveBox runs a call whose result is a handle on a box of the runtime, and
// stores the handle in out.
func giveBox(rt *C.CSandboxRuntime, out **C.CBoxHandle, cerr *C.CSandboxError, which func(*core.Runtime) (*core.Box, error)) C.SandboxErrorCode {
	return guard(cerr, func() error {
		if out == nil {
			return null("out")
		}
		*out = nil
		r, err := runtimeOf(rt)
		if err != nil {
			return err
		}
		box, err := which(r)
		if err != nil {
			return err
		}
		h, err := put(box, handle(unsafe.Pointer(rt)))
		*out = (*C.CBoxHandle)(h.address())
		return err
	})
}

func boxOf(box *C.CBoxHandle) (*core.Box, error) {
	return get[*core.Box](handle(unsafe.Pointer(box)), "box")
}

//export sandbox_start_box
func sandbox_start_box(box *C.CBoxHandle, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		b, err := boxOf(box)
		if err != nil {
			return err
		}
		_, err = b.Start(context.Background())
		return err
	})
}

//export sandbox_stop_box
func sandbox_stop_box(box *C.CBoxHandle, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		b, err := boxOf(box)
		if err != nil {
			return err
		}
		_, err = b.Stop(context.Background(), core.DefaultGrace)
		return err
	})
}

//export sandbox_remove
func sandbox_remove(rt *C.CSandboxRuntime, ref *C.cchar, force C.int, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		r, err := runtimeOf(rt)
		if err != nil {
			return err
		}
		name, err := required(ref, "id_or_name")
		if err != nil {
			return err
		}
		return r.Remove(context.Background(), name, force != 0)
	})
}

//export sandbox_box_id
func sandbox_box_id(box *C.CBoxHandle) (id *C.char) {
	guard(nil, func() error {
		b, err := boxOf(box)
		if err == nil {
			id = newString([]byte(b.ID()))
		}
		return err
	})
	return id
}

//export sandbox_box_free
func sandbox_box_free(box *C.CBoxHandle) {
	take[*core.Box](handle(unsafe.Pointer(box)))
}
