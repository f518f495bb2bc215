package image

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"sandbox/core"
)

// Look returns what an image says of itself at its registry. Nothing is taken from the
// store, nor goes into it, and no other registry is looked in. The image has no layers, and
// its ID is the reference by which its registry knows it for good, REPOSITORY@DIGEST.
// Errors: those of Pull.
func (s *Store) Look(ctx context.Context, ref string) (core.Image, error) {
	if err := checkName(ref); err != nil {
		return core.Image{}, err
	}
	place, err := s.c.Sources.parse(ref)
	if err != nil {
		return core.Image{}, badName(err, ref)
	}
	repo, err := s.connect(ctx, place, transport.PullScope)
	if err != nil {
		return core.Image{}, err
	}
	defer repo.close()
	content, digest, err := repo.content(ctx)
	if err != nil {
		return core.Image{}, fmt.Errorf("look at %s: %w", full(place), err)
	}
	var i Info
	describe(&i, content)
	return core.Image{
		Ref: full(place), ID: full(place.Context().Digest(digest.String())), Env: i.Env, WorkingDir: i.WorkingDir, User: i.User,
		Command: slices.Concat(i.Entrypoint, i.Cmd), HealthCheck: i.HealthCheck, StopSignal: i.StopSignal,
	}, nil
}
