package main

// #include "glue.h"
import "C"

import (
	"context"

	"sandbox/api"
	"sandbox/client"
)

//export sandbox_list_info
func sandbox_list_info(rt *C.CSandboxRuntime, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() ([]api.Box, error) {
		on, err := runtimeOf(rt)
		if err != nil {
			return nil, err
		}
		return on.Boxes(context.Background(), client.Filter{})
	})
}

//export sandbox_get_info
func sandbox_get_info(rt *C.CSandboxRuntime, ref *C.cchar, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() (api.Box, error) {
		on, err := runtimeOf(rt)
		if err != nil {
			return api.Box{}, err
		}
		return find(on, ref)
	})
}

//export sandbox_box_info
func sandbox_box_info(box *C.CBoxHandle, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() (api.Box, error) {
		b, err := boxOf(box)
		if err != nil {
			return api.Box{}, err
		}
		return b.on.Box(context.Background(), b.id)
	})
}

//export sandbox_box_metrics
func sandbox_box_metrics(box *C.CBoxHandle, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() (api.BoxMetrics, error) {
		b, err := boxOf(box)
		if err != nil {
			return api.BoxMetrics{}, err
		}
		return b.on.BoxMetrics(context.Background(), b.id)
	})
}
