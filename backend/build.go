package backend

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core/build"
	"sandbox/core/build/recipe"
	"sandbox/core/build/tree"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// defaultRecipe is the name of the recipe in a context.
const defaultRecipe = "Dockerfile"

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

// OpenBuild returns what a document asks to be built. The recipe is read first, so that
// one that is wrong is refused before the context is looked through. The caller closes the
// Context. Errors: InvalidArgument (the recipe, line by line; the context), TooLarge,
// PermissionDenied, and what ended ctx.
func OpenBuild(ctx context.Context, b options.Build) (o BuildOptions, err error) {
	o = BuildOptions{
		Name: b.Name, Target: b.Target, Args: b.Args, NoCache: b.NoCache, NoNetwork: b.NoNetwork,
		Timeout: b.Timeout, CPUs: b.CPUs, MemoryMiB: b.MemoryMiB, Context: tree.Empty(),
	}
	if b.Recipe != nil {
		o.Recipe = []byte(*b.Recipe)
	} else if o.Recipe, err = ReadRecipe(b.Context, b.RecipePath); err != nil {
		return o, err
	}
	if _, err := recipe.Read(o.Recipe); err != nil {
		return o, err
	}
	if b.Context != "" {
		o.Context, err = tree.Open(ctx, b.Context)
	}
	return o, err
}

// ReadRecipe reads a recipe of this host: a file, or for "" the Dockerfile of a directory.
// Errors: InvalidArgument.
func ReadRecipe(dir, file string) ([]byte, error) {
	name := file
	if name == "" {
		name = filepath.Join(dir, defaultRecipe)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // without O_NONBLOCK, opening a FIFO would block
	if errors.Is(err, fs.ErrNotExist) && file == "" {
		return nil, fault.New(fault.InvalidArgument, "%s has no %s: name the recipe", dir, defaultRecipe)
	}
	if err != nil {
		return nil, fault.Wrap(fault.InvalidArgument, err, "the recipe")
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, recipe.MaxSize+1))
	return text, fault.Wrap(fault.InvalidArgument, err, "the recipe")
}
