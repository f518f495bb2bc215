package main

// #include <stdlib.h>
// #include "glue.h"
import "C"

import "unsafe"

// step is how far a long call has come; see SandboxProgress.
type step struct {
	stage       string
	part, parts int
	done, total int64 // bytes; total is -1 if unknown
}

// reported runs work and passes the steps that it reports to C, on the thread
// that C called from: work itself runs on another one, and waits while the
// callback runs. Without a callback, report is nil.
func reported(to *C.progress, work func(report func(step)) error) error {
	if to.callback == nil {
		return work(nil)
	}
	steps, end, over := make(chan step), make(chan error, 1), make(chan struct{})
	defer close(over) // a transport may read on for a moment after the work
	report := func(s step) {
		select {
		case steps <- s:
		case <-over:
		}
	}
	go func() { end <- caught(func() error { return work(report) }) }()
	for {
		select {
		case s := <-steps:
			s.tell(to)
		case err := <-end:
			return err
		}
	}
}

// tell calls the callback.
func (s step) tell(to *C.progress) {
	stage := C.CString(s.stage)
	defer C.free(unsafe.Pointer(stage))
	C.call_progress(to, &C.SandboxProgress{
		stage: stage, part: C.int(s.part), parts: C.int(s.parts), done: C.longlong(s.done), total: C.longlong(s.total),
	})
}
