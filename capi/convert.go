package main

// #include <stdlib.h>
// #include <string.h>
// #include "glue.h"
import "C"

import (
	"encoding/json"
	"unsafe"

	"sandbox/core/options"
)

// newString returns text to C as a NUL-terminated string from malloc, which the
// caller in C frees. What is not valid text is replaced; see clean.
func newString(text []byte) *C.char {
	if !isClean(text) {
		text = clean(nil, text)
	}
	p := C.malloc(C.size_t(len(text)) + 1)
	s := unsafe.Slice((*byte)(p), len(text)+1)
	copy(s, text)
	s[len(text)] = 0
	return (*C.char)(p)
}

// optional returns a string of C that may be NULL. NULL becomes "".
func optional(text *C.cchar) string { return C.GoString(text) }

// required returns a string of C that must not be NULL. Errors:
// InvalidArgument.
func required(text *C.cchar, parameter string) (string, error) {
	if text == nil {
		return "", null(parameter)
	}
	return optional(text), nil
}

// document returns a JSON document of C, or nil for NULL. Of a document that is
// too long it copies just enough for the decoder to see that.
func document(text *C.cchar) []byte {
	if text == nil {
		return nil
	}
	n := C.strnlen(text, options.MaxDocument+1)
	return C.GoBytes(unsafe.Pointer(text), C.int(n))
}

// giveJSON runs a call whose result is a JSON document, and stores the document
// in out.
func giveJSON[T any](out **C.char, cerr *C.CSandboxError, what func() (T, error)) C.SandboxErrorCode {
	return guard(cerr, func() error {
		if out == nil {
			return null("out_json")
		}
		*out = nil
		v, err := what()
		if err != nil {
			return err
		}
		doc, err := json.Marshal(v)
		if err != nil {
			return err
		}
		*out = newString(doc)
		return nil
	})
}
