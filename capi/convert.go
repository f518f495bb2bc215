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

// newString returns text to C, as malloc'd, NUL-terminated, clean text.
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

// optional reads a text that may be NULL.
func optional(text *C.cchar) string { return C.GoString(text) }

// required reads a text that may not be NULL.
func required(text *C.cchar, parameter string) (string, error) {
	if text == nil {
		return "", null(parameter)
	}
	return optional(text), nil
}

// document reads a JSON document, or nil for NULL. Of one that is too long it
// reads just enough for the decoder to see that.
func document(text *C.cchar) []byte {
	if text == nil {
		return nil
	}
	n := C.strnlen(text, options.MaxDocument+1)
	return C.GoBytes(unsafe.Pointer(text), C.int(n))
}

// giveJSON answers a call whose result is a JSON document.
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
