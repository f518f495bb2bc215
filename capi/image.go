package main

// #include "glue.h"
import "C"

import (
	"context"

	"sandbox/api"
	"sandbox/backend"
)

//export sandbox_image_list
func sandbox_image_list(rt *C.CSandboxRuntime, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() ([]api.Image, error) {
		on, err := runtimeOf(rt)
		if err != nil {
			return nil, err
		}
		list, err := on.Images(context.Background())
		return append([]api.Image{}, list...), err
	})
}

// image_pull implements sandbox_image_pull; see callbacks.c.
//
//export image_pull
func image_pull(rt *C.CSandboxRuntime, ref *C.cchar, to *C.progress, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveImage(rt, to, out, cerr, func(on backend.Boxes, progress func(api.ImageProgress)) (api.Image, error) {
		name, err := required(ref, "reference")
		if err != nil {
			return api.Image{}, err
		}
		return on.Pull(context.Background(), name, progress)
	})
}

// image_import implements sandbox_image_import; see callbacks.c.
//
//export image_import
func image_import(rt *C.CSandboxRuntime, name, source *C.cchar, to *C.progress, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveImage(rt, to, out, cerr, func(on backend.Boxes, progress func(api.ImageProgress)) (api.Image, error) {
		ref, err := required(name, "name")
		if err != nil {
			return api.Image{}, err
		}
		path, err := required(source, "source")
		if err != nil {
			return api.Image{}, err
		}
		return on.ImportImage(context.Background(), ref, path, progress)
	})
}

// image_export implements sandbox_image_export; see callbacks.c.
//
//export image_export
func image_export(rt *C.CSandboxRuntime, ref, path, compression *C.cchar, to *C.progress, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		on, err := runtimeOf(rt)
		if err != nil {
			return err
		}
		name, err := required(ref, "reference")
		if err != nil {
			return err
		}
		file, err := required(path, "path")
		if err != nil {
			return err
		}
		return reported(to, func(report func(step)) error {
			o := backend.ExportOptions{Compression: api.Compression(optional(compression)), Progress: layersDone(report)}
			return backend.ExportImageTo(context.Background(), on, name, file, o)
		})
	})
}

// image_push implements sandbox_image_push; see callbacks.c.
//
//export image_push
func image_push(rt *C.CSandboxRuntime, ref, as, compression *C.cchar, to *C.progress, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveImage(rt, to, out, cerr, func(on backend.Boxes, progress func(api.ImageProgress)) (api.Pushed, error) {
		name, err := required(ref, "reference")
		if err != nil {
			return api.Pushed{}, err
		}
		o := backend.PushOptions{As: optional(as), Compression: api.Compression(optional(compression)), Progress: progress}
		return on.PushImage(context.Background(), name, o)
	})
}

// giveImage runs a call that pulls, imports or pushes an image, and stores the
// document of what it has made in out unless that is NULL.
func giveImage[T any](rt *C.CSandboxRuntime, to *C.progress, out **C.char, cerr *C.CSandboxError, work func(backend.Boxes, func(api.ImageProgress)) (T, error)) C.SandboxErrorCode {
	var unwanted *C.char
	if out == nil {
		out = &unwanted
		defer func() { sandbox_free_string(unwanted) }()
	}
	return giveJSON(out, cerr, func() (made T, err error) {
		on, err := runtimeOf(rt)
		if err != nil {
			return made, err
		}
		err = reported(to, func(report func(step)) error {
			made, err = work(on, layersDone(report))
			return err
		})
		return made, err
	})
}

// layersDone returns what an image's layers tell their progress to.
func layersDone(report func(step)) func(api.ImageProgress) {
	return func(p api.ImageProgress) {
		if report == nil {
			return
		}
		s := step{stage: string(p.Stage), part: p.Layer, parts: p.Layers, done: p.Done, total: p.Total}
		if p.Total == 0 {
			s.total = -1
		}
		report(s)
	}
}

//export sandbox_image_remove
func sandbox_image_remove(rt *C.CSandboxRuntime, ref *C.cchar, force C.int, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		on, err := runtimeOf(rt)
		if err != nil {
			return err
		}
		name, err := required(ref, "reference")
		if err != nil {
			return err
		}
		return on.RemoveImage(context.Background(), name, force != 0)
	})
}
