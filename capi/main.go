// Package main is the C library libsandbox.so: the functions of
// include/sandbox.h. Each function converts its arguments, calls package core
// and converts the answer; it decides nothing. The header is included here,
// through a link beside this file that Go's build cache watches, so that the C
// compiler refuses an export that differs from its prototype.
package main

// #include "glue.h"
import "C"

import "sandbox/core"

// main is never called: the library has no program of its own.
func main() {}

// version stays in C memory for the life of the process.
var version = C.CString(core.Version)

//export sandbox_version
func sandbox_version() *C.cchar { return version }
