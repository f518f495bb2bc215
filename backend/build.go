package backend

import (
	"context"
	"io"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core/build"
)

// BuildOptions are those of [build.Builder]. Both ways need a Reporter.
type BuildOptions = build.Options

// BuildImage builds an image of a recipe.
func (h hostBoxes) BuildImage(ctx context.Context, o BuildOptions) (api.Image, error) {
	return h.host.Builder().Build(ctx, o)
}

// BuildImage sends the recipe and the context, without what .dockerignore leaves out.
func (s *serverBoxes) BuildImage(ctx context.Context, o BuildOptions) (api.Image, error) {
	if err := s.refuseAfterShutdown(); err != nil {
		return api.Image{}, err
	}
	r, w := io.Pipe()
	packed := make(chan struct{})
	go func() {
		defer close(packed)
		_ = w.CloseWithError(o.Context.Pack(ctx, o.Recipe, w)) // never fails
	}()
	img, err := s.Client.BuildImage(ctx, client.Build{
		Name: o.Name, Target: o.Target, Args: o.Args, NoCache: o.NoCache, NoNetwork: o.NoNetwork,
		Timeout: o.Timeout, CPUs: o.CPUs, MemoryMiB: o.MemoryMiB,
	}, r, o.Report)
	_ = r.Close() // ends the goroutine if the server wants no more; it never fails
	<-packed
	return img, err
}
