// The C library libsandbox.so: the functions of include/sandbox.h. Each
// converts its arguments, calls core and converts the answer; it decides
// nothing. The header is included here (by a link beside this file, which Go's
// build cache watches), so the C compiler refuses an export that differs from
// its prototype.
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
