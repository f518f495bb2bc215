package main

// #include "glue.h"
import "C"

import (
	"context"
	"errors"
	"unsafe"

	"sandbox/api"
	"sandbox/core/options"
)

// codeRun is a run of code that C holds a handle on.
type codeRun struct{ events[api.CodeEvent] }

// unreadCode is how many events of a run wait here to be taken: each may have some MiB.
const unreadCode = 1

//export sandbox_code_start
func sandbox_code_start(box *C.CBoxHandle, doc *C.cchar, out **C.CSandboxCodeRun, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		if out == nil {
			return null("out")
		}
		*out = nil
		b, err := boxOf(box)
		if err != nil {
			return err
		}
		text, err := required(doc, "code_json")
		if err != nil {
			return err
		}
		o, err := options.DecodeCode([]byte(text))
		if err != nil {
			return err
		}
		r, err := b.on.RunCode(context.Background(), b.id, o)
		if err != nil {
			return err
		}
		told, err := newEvents(r, unreadCode)
		if err != nil {
			return err
		}
		h, err := putBeside(codeRun{told}, handle(unsafe.Pointer(box)))
		if err != nil {
			return errors.Join(err, told.Close())
		}
		*out = (*C.CSandboxCodeRun)(h.address())
		return nil
	})
}

//export sandbox_code_read
func sandbox_code_read(run *C.CSandboxCodeRun, timeout C.double, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() (*api.CodeEvent, error) {
		r, err := get[codeRun](handle(unsafe.Pointer(run)), "run")
		if err != nil {
			return nil, err
		}
		return nextOf(timeout, r.next, "the run has ended: its last event says how", "the code has told nothing in this time")
	})
}

//export sandbox_code_fd
func sandbox_code_fd(run *C.CSandboxCodeRun, out *C.int, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		if out == nil {
			return null("out_fd")
		}
		*out = -1
		r, err := get[codeRun](handle(unsafe.Pointer(run)), "run")
		if err != nil {
			return err
		}
		return r.descriptor(out)
	})
}

//export sandbox_code_free
func sandbox_code_free(run *C.CSandboxCodeRun) {
	guard(nil, func() error {
		if r, ok := take[codeRun](handle(unsafe.Pointer(run))); ok {
			return r.Close()
		}
		return nil
	})
}

//export sandbox_context_create
func sandbox_context_create(box *C.CBoxHandle, doc *C.cchar, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() (api.CodeContext, error) {
		b, err := boxOf(box)
		if err != nil {
			return api.CodeContext{}, err
		}
		text := optional(doc)
		if doc == nil {
			text = "{}"
		}
		o, err := options.DecodeCodeContext([]byte(text))
		if err != nil {
			return api.CodeContext{}, err
		}
		return b.on.CreateCodeContext(context.Background(), b.id, o)
	})
}

//export sandbox_context_list
func sandbox_context_list(box *C.CBoxHandle, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() ([]api.CodeContext, error) {
		b, err := boxOf(box)
		if err != nil {
			return nil, err
		}
		return b.on.CodeContexts(context.Background(), b.id)
	})
}

//export sandbox_context_interrupt
func sandbox_context_interrupt(box *C.CBoxHandle, id *C.cchar, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return onContext(box, id, out, cerr, func(b *boxRef, id string) (api.CodeContext, error) {
		return b.on.InterruptCode(context.Background(), b.id, id)
	})
}

//export sandbox_context_restart
func sandbox_context_restart(box *C.CBoxHandle, id *C.cchar, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return onContext(box, id, out, cerr, func(b *boxRef, id string) (api.CodeContext, error) {
		return b.on.RestartCodeContext(context.Background(), b.id, id)
	})
}

// onContext runs a call about a context, which it returns as a JSON document.
func onContext(box *C.CBoxHandle, id *C.cchar, out **C.char, cerr *C.CSandboxError, do func(*boxRef, string) (api.CodeContext, error)) C.SandboxErrorCode {
	return onFile(box, id, "context_id", out, cerr, do)
}

//export sandbox_context_remove
func sandbox_context_remove(box *C.CBoxHandle, id *C.cchar, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		b, err := boxOf(box)
		if err != nil {
			return err
		}
		name, err := required(id, "context_id")
		if err != nil {
			return err
		}
		return b.on.RemoveCodeContext(context.Background(), b.id, name)
	})
}
