package main

// #include "glue.h"
import "C"

import (
	"context"

	"sandbox/api"
	"sandbox/core/options"
)

//export sandbox_box_snapshot
func sandbox_box_snapshot(box *C.CBoxHandle, name *C.cchar, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() (api.Snapshot, error) {
		b, err := boxOf(box)
		if err != nil {
			return api.Snapshot{}, err
		}
		return b.on.SnapshotBox(context.Background(), b.id, optional(name))
	})
}

//export sandbox_box_clone
func sandbox_box_clone(box *C.CBoxHandle, doc *C.cchar, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() ([]api.Box, error) {
		b, err := boxOf(box)
		if err != nil {
			return nil, err
		}
		var c options.Clone
		if doc != nil {
			if c, err = options.DecodeClone(document(doc)); err != nil {
				return nil, err
			}
		}
		return b.on.CloneBox(context.Background(), b.id, c)
	})
}

//export sandbox_box_rollback
func sandbox_box_rollback(box *C.CBoxHandle, snapshot *C.cchar, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		b, err := boxOf(box)
		if err != nil {
			return err
		}
		ref, err := required(snapshot, "snapshot")
		if err != nil {
			return err
		}
		_, err = b.on.RollbackBox(context.Background(), b.id, ref)
		return err
	})
}

//export sandbox_box_diff
func sandbox_box_diff(box *C.CBoxHandle, from *C.cchar, pageSize C.int, token *C.cchar, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() (api.Changes, error) {
		b, err := boxOf(box)
		if err != nil {
			return api.Changes{}, err
		}
		return b.on.DiffBox(context.Background(), b.id, options.Diff{From: optional(from), PageSize: int(pageSize), PageToken: optional(token)})
	})
}

//export sandbox_snapshots
func sandbox_snapshots(rt *C.CSandboxRuntime, box *C.cchar, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() ([]api.SnapshotNode, error) {
		on, err := runtimeOf(rt)
		if err != nil {
			return nil, err
		}
		return on.Snapshots(context.Background(), optional(box))
	})
}
