package image

import (
	"context"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sync/errgroup"

	"sandbox/api"
	"sandbox/core/fault"
)

// PushOptions say how an image is pushed.
type PushOptions struct {
	As          string          // the reference to push to; "" is the image's own name
	Compression api.Compression // of its layers; "" is that of [api.CompressZstd]
	Progress    func(Progress)  // may be nil; it is as in [Store.Import]
}

// CheckPush returns why an image can't be pushed as ref, or nil. Errors:
// InvalidArgument.
func (s *Store) CheckPush(ref string) error { _, err := s.target(ref); return err }

// target returns the place that ref names for a push. It must name its registry:
// which of several was meant can't be asked of them, as a pull does.
func (s *Store) target(ref string) (name.Tag, error) {
	if err := checkName(ref); err != nil {
		return name.Tag{}, err
	}
	if short(ref) {
		return name.Tag{}, fault.New(fault.InvalidArgument, "image name %.300q names no registry: push it as HOST/NAME:TAG", ref)
	}
	place, err := s.c.Sources.parse(ref)
	if err != nil {
		return name.Tag{}, badName(err, ref)
	}
	tag, ok := place.(name.Tag)
	if !ok {
		return name.Tag{}, fault.New(fault.InvalidArgument, "image name %.300q has a digest, want a tag: push it as HOST/NAME:TAG", ref)
	}
	return tag, nil
}

// Push sends the image that ref names to a registry. Layers that the registry has
// are not sent, so one that broke off goes on where it stopped. The registry gets
// the same image as Export writes. Errors: ImageNotFound, InvalidArgument (a
// name, or the compression), Image (a layer is missing, or has what an image
// can't have), TooLarge, Upstream (the registry is down or slow, or refuses us),
// Config (the credentials can't be read), Storage, and what ended ctx.
func (s *Store) Push(ctx context.Context, ref string, o PushOptions) (api.Pushed, error) {
	how, err := CheckCompression(o.Compression)
	if err != nil {
		return api.Pushed{}, err
	}
	info, free, err := s.leaving(ctx, ref)
	if err != nil {
		return api.Pushed{}, err
	}
	defer free()
	if o.As == "" {
		o.As = info.Name
	}
	to, err := s.target(o.As)
	if err != nil {
		return api.Pushed{}, err
	}
	repo, err := s.connect(ctx, to, transport.PushScope)
	if err != nil {
		return api.Pushed{}, fmt.Errorf("push %s: %w", full(to), err)
	}
	defer repo.close()
	p := &push{s: s, repo: repo, info: info, how: how, report: reporting(o.Progress), packed: make([]packedLayer, len(info.Layers))}
	digest, err := p.all(ctx)
	if err != nil {
		return api.Pushed{}, fmt.Errorf("push %s: %w", full(to), err)
	}
	return api.Pushed{Reference: full(to), Digest: digest}, nil
}

// push is a push that is running.
type push struct {
	s      *Store
	repo   *repository
	info   Info
	how    api.Compression
	report func(Progress)
	packed []packedLayer // what is known of the layers
}

// all sends the layers, then the documents, of which the manifest is the last: it
// makes the image known. It returns the digest of the manifest.
func (p *push) all(ctx context.Context) (string, error) {
	work, ctx2 := errgroup.WithContext(ctx)
	work.SetLimit(packedAhead)
	for i := range p.info.Layers {
		work.Go(func() error { return p.layer(ctx2, i) })
	}
	if err := work.Wait(); err != nil {
		return "", err
	}
	config, manifest, err := manifestOf(p.info, p.packed, p.how)
	if err != nil {
		return "", err
	}
	if err := p.repo.give(ctx, bytesContent(config), func(int64) {}); err != nil {
		return "", err
	}
	return digestOf(manifest).String(), p.repo.putManifest(ctx, manifest)
}

// layer sends a layer unless the registry has it. One that left the store before
// is only packed again if the registry does not have it as it was then.
func (p *push) layer(ctx context.Context, i int) (err error) {
	var known bool
	if p.packed[i], known = p.s.known(p.info.Layers[i], p.how); known {
		has, err := p.repo.has(ctx, p.packed[i].Digest)
		if err != nil || has {
			p.done(i, err)
			return err
		}
	}
	file, packed, err := p.s.pack(ctx, p.info.Layers[i], p.how, func(done int64) { p.tell(i, api.LayerPacking, done, 0) })
	if err != nil {
		return err
	}
	defer file.Close()
	p.packed[i] = packed
	err = p.repo.give(ctx, sendable{packed.Digest, packed.Size, func() io.Reader { return io.NewSectionReader(file, 0, packed.Size) }},
		func(sent int64) { p.tell(i, api.LayerSending, sent, packed.Size) })
	p.done(i, err)
	return err
}

func (p *push) done(i int, err error) {
	if err == nil {
		p.tell(i, api.LayerDone, p.packed[i].Size, p.packed[i].Size)
	}
}

func (p *push) tell(i int, stage api.ImageStage, done, total int64) {
	p.report(Progress{Layer: i + 1, Layers: len(p.info.Layers), Stage: stage, Done: done, Total: total})
}
