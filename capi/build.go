package main

// #include "glue.h"
import "C"

import (
	"context"
	"errors"
	"io"
	"unsafe"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core/fault"
	"sandbox/core/feed"
	"sandbox/core/options"
)

// imageBuild is a build that C holds a handle on.
type imageBuild struct {
	events[api.BuildEvent]
	*building
}

// next waits for the next event.
func (b imageBuild) next(ctx context.Context) (api.BuildEvent, error) { return b.events.next(ctx) }

// unreadBuild is how many events of a build wait here to be taken.
const unreadBuild = 1

//export sandbox_build_start
func sandbox_build_start(rt *C.CSandboxRuntime, doc *C.cchar, out **C.CSandboxBuild, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		if out == nil {
			return null("out")
		}
		*out = nil
		on, err := runtimeOf(rt)
		if err != nil {
			return err
		}
		text, err := required(doc, "build_json")
		if err != nil {
			return err
		}
		b, err := options.DecodeBuild([]byte(text))
		if err != nil {
			return err
		}
		o, err := backend.OpenBuild(context.Background(), b)
		if err != nil {
			return err
		}
		begun, source := startBuild(on, o)
		told, err := newEvents(source, unreadBuild)
		if err != nil {
			return err
		}
		h, err := put(imageBuild{told, begun}, handle(unsafe.Pointer(rt)))
		if err != nil {
			return errors.Join(err, told.Close())
		}
		*out = (*C.CSandboxBuild)(h.address())
		return nil
	})
}

//export sandbox_build_read
func sandbox_build_read(build *C.CSandboxBuild, timeout C.double, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() (*api.BuildEvent, error) {
		b, err := get[imageBuild](handle(unsafe.Pointer(build)), "build")
		if err != nil {
			return nil, err
		}
		return nextOf(timeout, b.next, "the build has ended: its last event says how", "the build has told nothing in this time")
	})
}

//export sandbox_build_wait
func sandbox_build_wait(build *C.CSandboxBuild, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	var unwanted *C.char
	if out == nil {
		out = &unwanted
		defer func() { sandbox_free_string(unwanted) }()
	}
	return giveJSON(out, cerr, func() (img api.Image, err error) {
		b, err := get[imageBuild](handle(unsafe.Pointer(build)), "build")
		for err == nil {
			_, err = b.next(context.Background())
		}
		if errors.Is(err, io.EOF) {
			return b.image, b.failure
		}
		return img, err
	})
}

//export sandbox_build_fd
func sandbox_build_fd(build *C.CSandboxBuild, out *C.int, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		if out == nil {
			return null("out_fd")
		}
		*out = -1
		b, err := get[imageBuild](handle(unsafe.Pointer(build)), "build")
		if err != nil {
			return err
		}
		return b.descriptor(out)
	})
}

//export sandbox_build_free
func sandbox_build_free(build *C.CSandboxBuild) {
	guard(nil, func() error {
		if b, ok := take[imageBuild](handle(unsafe.Pointer(build))); ok {
			return b.Close()
		}
		return nil
	})
}

// building is a build that is under way, as its Reporter. What it tells waits until it
// is read.
type building struct {
	ctx     context.Context //nolint:containedctx // of one build
	told    chan api.BuildEvent
	ended   chan struct{}
	image   api.Image // set before the last event is told, as is failure
	failure error
}

// startBuild begins a build, whose Context it closes, and returns it with its events. To
// close these ends the build, and waits for that.
func startBuild(on backend.Boxes, o backend.BuildOptions) (*building, *feed.Feed[api.BuildEvent]) {
	ctx, cancel := context.WithCancel(context.Background())
	b := &building{ctx: ctx, told: make(chan api.BuildEvent), ended: make(chan struct{})}
	o.Report = b
	go func() {
		defer close(b.ended)
		defer cancel()
		b.failure = caught(func() (err error) {
			b.image, err = on.BuildImage(ctx, o)
			return err
		})
		_ = o.Context.Close()
		_ = b.tell(b.end())
	}()
	return b, feed.New(0, b.event, cancel, func() { <-b.ended })
}

// end returns the last event.
func (b *building) end() api.BuildEvent {
	if f := fault.Of(b.failure); f != nil {
		return api.BuildEvent{Type: api.BuildEnd, Error: &api.Failure{Code: f.Kind, Message: f.Message}}
	}
	return api.BuildEvent{Type: api.BuildEnd, Image: &b.image}
}

// event waits for the next event. It returns io.EOF behind the last one.
func (b *building) event() (api.BuildEvent, error) {
	select {
	case e := <-b.told:
		return e, nil
	case <-b.ended:
		return api.BuildEvent{}, io.EOF
	}
}

// tell passes an event on unless the build has ended: a transport may read on for a
// moment then.
func (b *building) tell(e api.BuildEvent) error {
	select {
	case b.told <- e:
		return nil
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
}

// Pull tells of the progress of a pull.
func (b *building) Pull(p api.ImageProgress) {
	_ = b.tell(api.BuildEvent{Type: api.BuildPulled, Progress: &p})
}

// Step tells of a step.
func (b *building) Step(s api.BuildStep) {
	_ = b.tell(api.BuildEvent{Type: api.BuildStepped, Step: &s})
}

// Output tells of output of the command of a step.
func (b *building) Output(step int, stderr bool, p []byte) error {
	o := api.NewBuildOutput(step, stderr, p)
	return b.tell(api.BuildEvent{Type: api.BuildPrinted, Output: &o})
}
