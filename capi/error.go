package main

// #include <stdlib.h>
// #include "glue.h"
import "C"

import (
	"unsafe"

	"sandbox/core/fault"
)

// guard runs the body of an exported function and reports its result. It
// recovers a panic, which must not unwind into C: that would end the host
// process.
func guard(out *C.CSandboxError, call func() error) C.SandboxErrorCode {
	return report(out, caught(call))
}

// caught runs call and turns a panic into a failure.
func caught(call func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fault.New(fault.Internal, "panic: %v", v)
		}
	}()
	return call()
}

// report returns the code of err, and fills in out unless that is NULL.
func report(out *C.CSandboxError, err error) C.SandboxErrorCode {
	if err == nil {
		return C.SANDBOX_OK
	}
	f := fault.Of(err)
	code := C.SandboxErrorCode(f.Kind.Row().C)
	if out != nil {
		out.code, out.message = code, newString([]byte(f.Message))
	}
	return code
}

// null returns the failure of a required parameter that is NULL.
func null(parameter string) error {
	return fault.New(fault.InvalidArgument, "%s must not be NULL", parameter)
}

//export sandbox_error_free
func sandbox_error_free(err *C.CSandboxError) {
	if err == nil {
		return
	}
	C.free(unsafe.Pointer(err.message))
	err.code, err.message = C.SANDBOX_OK, nil
}

//export sandbox_free_string
func sandbox_free_string(text *C.char) { C.free(unsafe.Pointer(text)) }
