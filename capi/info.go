package main

// #include "glue.h"
import "C"

import (
	"context"

	"sandbox/api"
)

//export sandbox_list_info
func sandbox_list_info(rt *C.CSandboxRuntime, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() ([]api.Box, error) {
		r, err := runtimeOf(rt)
		if err != nil {
			return nil, err
		}
		recs, err := r.List(context.Background())
		if err != nil {
			return nil, err
		}
		list := make([]api.Box, len(recs))
		for i, rec := range recs {
			list[i] = rec.Summary()
		}
		return list, nil
	})
}

//export sandbox_get_info
func sandbox_get_info(rt *C.CSandboxRuntime, ref *C.cchar, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() (api.Box, error) {
		r, err := runtimeOf(rt)
		if err != nil {
			return api.Box{}, err
		}
		name, err := required(ref, "id_or_name")
		if err != nil {
			return api.Box{}, err
		}
		rec, err := r.Find(context.Background(), name)
		return rec.Info(), err
	})
}

//export sandbox_box_info
func sandbox_box_info(box *C.CBoxHandle, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() (api.Box, error) {
		b, err := boxOf(box)
		if err != nil {
			return api.Box{}, err
		}
		rec, err := b.Record(context.Background())
		return rec.Info(), err
	})
}

//export sandbox_box_metrics
func sandbox_box_metrics(box *C.CBoxHandle, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() (api.BoxMetrics, error) {
		b, err := boxOf(box)
		if err != nil {
			return api.BoxMetrics{}, err
		}
		return b.Metrics(context.Background())
	})
}
