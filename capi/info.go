package main

// #include "glue.h"
import "C"

import (
	"context"
	"time"

	"sandbox/api"
	"sandbox/client"
	documents "sandbox/core/document"
	"sandbox/core/fault"
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

//export sandbox_box_metrics_series
func sandbox_box_metrics_series(box *C.CBoxHandle, from, to *C.cchar, seconds C.int, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() (api.BoxSeries, error) {
		b, err := boxOf(box)
		if err != nil {
			return api.BoxSeries{}, err
		}
		s := client.Series{Step: time.Duration(seconds) * time.Second}
		if s.From, err = moment(from, "from"); err != nil {
			return api.BoxSeries{}, err
		}
		if s.To, err = moment(to, "to"); err != nil {
			return api.BoxSeries{}, err
		}
		return b.on.BoxSeries(context.Background(), b.id, s)
	})
}

// moment reads a time that may be left out.
func moment(text *C.cchar, name string) (time.Time, error) {
	if text == nil {
		return time.Time{}, nil
	}
	at, ok := documents.Moment(optional(text), time.Now())
	if !ok {
		return at, fault.New(fault.InvalidArgument, "%s must be a date-time of RFC 3339, or how long ago, such as 90m or 2d", name)
	}
	return at, nil
}
