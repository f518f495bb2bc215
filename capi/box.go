package main

// #include "glue.h"
import "C"

import (
	"context"
	"unsafe"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

//export sandbox_create_box
func sandbox_create_box(rt *C.CSandboxRuntime, doc *C.cchar, out **C.CBoxHandle, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveBox(rt, out, cerr, func(on backend.Boxes) (api.Box, error) { return create(on, "", doc) })
}

//export sandbox_create_named_box
func sandbox_create_named_box(rt *C.CSandboxRuntime, name, doc *C.cchar, out **C.CBoxHandle, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveBox(rt, out, cerr, func(on backend.Boxes) (api.Box, error) {
		n, err := required(name, "name")
		if err == nil && n == "" {
			err = fault.New(fault.InvalidArgument, "name must not be empty")
		}
		if err != nil {
			return api.Box{}, err
		}
		return create(on, n, doc)
	})
}

//export sandbox_get
func sandbox_get(rt *C.CSandboxRuntime, ref *C.cchar, out **C.CBoxHandle, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveBox(rt, out, cerr, func(on backend.Boxes) (api.Box, error) { return find(on, ref) })
}

func create(on backend.Boxes, name string, doc *C.cchar) (api.Box, error) {
	if doc == nil {
		return api.Box{}, null("options_json")
	}
	o, err := options.Decode(document(doc))
	if err != nil {
		return api.Box{}, err
	}
	o.Name = name
	if err := o.Check(); err != nil {
		return api.Box{}, err
	}
	return on.CreateBox(context.Background(), o)
}

func find(on backend.Boxes, ref *C.cchar) (api.Box, error) {
	name, err := required(ref, "id_or_name")
	if err != nil {
		return api.Box{}, err
	}
	return on.Box(context.Background(), name)
}

// boxRef is a box that C holds a handle on.
type boxRef struct {
	on backend.Boxes
	id string
}

// giveBox runs a call whose result is a handle on a box of the runtime, and
// stores the handle in out.
func giveBox(rt *C.CSandboxRuntime, out **C.CBoxHandle, cerr *C.CSandboxError, which func(backend.Boxes) (api.Box, error)) C.SandboxErrorCode {
	return guard(cerr, func() error {
		if out == nil {
			return null("out")
		}
		*out = nil
		on, err := runtimeOf(rt)
		if err != nil {
			return err
		}
		found, err := which(on)
		if err != nil {
			return err
		}
		h, err := put(&boxRef{on, found.ID}, handle(unsafe.Pointer(rt)))
		*out = (*C.CBoxHandle)(h.address())
		return err
	})
}

func boxOf(b *C.CBoxHandle) (*boxRef, error) {
	return get[*boxRef](handle(unsafe.Pointer(b)), "box")
}

//export sandbox_start_box
func sandbox_start_box(box *C.CBoxHandle, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		b, err := boxOf(box)
		if err != nil {
			return err
		}
		_, err = b.on.StartBox(context.Background(), b.id)
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
		_, err = b.on.StopBox(context.Background(), b.id, core.DefaultGrace)
		return err
	})
}

//export sandbox_pause_box
func sandbox_pause_box(box *C.CBoxHandle, reclaim C.int, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		b, err := boxOf(box)
		if err != nil {
			return err
		}
		_, err = b.on.PauseBox(context.Background(), b.id, reclaim != 0)
		return err
	})
}

//export sandbox_resume_box
func sandbox_resume_box(box *C.CBoxHandle, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		b, err := boxOf(box)
		if err != nil {
			return err
		}
		_, err = b.on.ResumeBox(context.Background(), b.id)
		return err
	})
}

//export sandbox_update_box
func sandbox_update_box(box *C.CBoxHandle, doc *C.cchar, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		b, err := boxOf(box)
		if err != nil {
			return err
		}
		if doc == nil {
			return null("update_json")
		}
		u, err := options.DecodeUpdate(document(doc))
		if err != nil {
			return err
		}
		_, err = b.on.UpdateBox(context.Background(), b.id, u)
		return err
	})
}

//export sandbox_remove
func sandbox_remove(rt *C.CSandboxRuntime, ref *C.cchar, force C.int, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		on, err := runtimeOf(rt)
		if err != nil {
			return err
		}
		name, err := required(ref, "id_or_name")
		if err != nil {
			return err
		}
		_, err = on.RemoveBox(context.Background(), name, force != 0)
		return err
	})
}

//export sandbox_box_id
func sandbox_box_id(box *C.CBoxHandle) (id *C.char) {
	guard(nil, func() error {
		b, err := boxOf(box)
		if err == nil {
			id = newString([]byte(b.id))
		}
		return err
	})
	return id
}

//export sandbox_box_free
func sandbox_box_free(b *C.CBoxHandle) {
	take[*boxRef](handle(unsafe.Pointer(b)))
}
