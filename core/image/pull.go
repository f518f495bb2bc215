package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"sandbox/core/fault"
)

// pull is a pull that is running in this process.
type pull struct {
	done chan struct{} // closed once info and err are set
	info Info
	err  error
}

// Pull downloads the image that ref names from its registry, even if the store
// has an image of that name: the tag may have moved to a newer one. Layers that
// the store has are not downloaded. progress is as in Import. Errors:
// InvalidArgument (the name), ImageNotFound, Upstream (the registry is down or
// slow, refuses us, or sends something else than it announced), Image (the
// image is hostile, damaged or for another machine), Config (the credentials
// can't be read), Storage, and what ended ctx.
func (s *Store) Pull(ctx context.Context, ref string, progress func(Progress)) (Info, error) {
	return s.pull(ctx, ref, false, progress)
}

// Get returns the image that ref names. It pulls an image that is not in the
// store, and one that was pulled and has lost a layer, unless Never is set in
// [Sources]. Errors: those of Inspect and Pull.
func (s *Store) Get(ctx context.Context, ref string, progress func(Progress)) (Info, error) {
	info, err := s.Inspect(ref)
	lost := err == nil && s.lost(info) && !s.c.Sources.Never
	if !lost && !fault.Is(err, fault.ImageNotFound) {
		return info, err
	}
	if s.c.Sources.Never {
		return Info{}, fault.New(fault.ImageNotFound, "no image %q in the store: import one with `sandbox images import NAME SOURCE`", ref)
	}
	return s.pull(ctx, ref, true, progress)
}

// Pulls reports whether a create pulls an image that is not in the store.
func (s *Store) Pulls() bool { return !s.c.Sources.Never }

// lost reports whether an image that came from a registry lacks a layer.
func (s *Store) lost(info Info) bool {
	_, err := s.stack(info)
	return err != nil && info.Digest != ""
}

// watch is the context key of the progress function.
type watch struct{}

// WithProgress makes the pulls that Resolve starts under the context report to
// progress, which is as in Import.
func WithProgress(ctx context.Context, progress func(Progress)) context.Context {
	return context.WithValue(ctx, watch{}, progress)
}

func watcher(ctx context.Context) func(Progress) {
	if progress, ok := ctx.Value(watch{}).(func(Progress)); ok {
		return progress
	}
	return func(Progress) {}
}

// pull tries one place after the other. It tries the next one only if a
// registry says that it does not have the image. It does not if a registry
// fails or wants a login: the next one might have a stranger's image of that
// name.
func (s *Store) pull(ctx context.Context, ref string, missing bool, progress func(Progress)) (Info, error) {
	places, err := s.c.Sources.places(ref)
	if err != nil {
		return Info{}, err
	}
	if progress == nil {
		progress = watcher(ctx)
	}
	if err := s.sweep(ctx); err != nil {
		return Info{}, err
	}
	var tried []string
	for i, place := range places {
		info, err := s.once(ctx, full(place), func() (Info, error) { return s.pullFrom(ctx, place, missing, progress) })
		if err != nil {
			err = fmt.Errorf("pull %s: %w", full(place), err)
		}
		if !fault.Is(err, fault.ImageNotFound) || len(places) == 1 {
			return info, err
		}
		if tried = append(tried, full(place)); i == len(places)-1 {
			return Info{}, fault.Wrap(fault.ImageNotFound, err, "no image %q, looked for as %s", ref, strings.Join(tried, ", "))
		}
	}
	return Info{}, fault.New(fault.Internal, "no place to pull %q from", ref)
}

// once calls do, unless another goroutine of this process is doing so already:
// then it waits for that one's result. If the other gave up because its context
// ended, it tries again.
func (s *Store) once(ctx context.Context, full string, do func() (Info, error)) (Info, error) {
	for {
		s.mu.Lock()
		p, other := s.pulls[full]
		if !other {
			p = &pull{done: make(chan struct{})}
			s.pulls[full] = p
		}
		s.mu.Unlock()
		if !other {
			p.info, p.err = do()
			s.mu.Lock()
			delete(s.pulls, full)
			s.mu.Unlock()
			close(p.done)
			return p.info, p.err
		}
		select {
		case <-p.done:
		case <-ctx.Done():
			return Info{}, fault.Of(ctx.Err())
		}
		if !fault.Is(p.err, fault.Canceled) && !fault.Is(p.err, fault.Timeout) {
			return p.info, p.err
		}
	}
}

// pullFrom pulls from one place. It waits until no other process does the same.
func (s *Store) pullFrom(ctx context.Context, place name.Reference, missing bool, progress func(Progress)) (Info, error) {
	info := Info{Name: full(place)}
	c, err := s.claim(ctx, "pull-"+key(info.Name))
	if err != nil {
		return Info{}, err
	}
	defer c.release()
	if missing { // another process may have pulled it meanwhile
		have, err := s.images.Get(key(info.Name))
		if !errors.Is(err, fs.ErrNotExist) && !s.lost(have) {
			return have, err
		}
	}
	if err := s.room(); err != nil {
		return Info{}, err
	}
	repo, err := s.connect(ctx, place, transport.PullScope)
	if err != nil {
		return Info{}, err
	}
	defer repo.close()
	content, digest, err := repo.content(ctx)
	if err != nil {
		return Info{}, err
	}
	info.Digest = digest.String()
	return s.add(ctx, info, content, progress)
}
