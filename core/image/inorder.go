package image

import (
	"context"
	"os"

	"golang.org/x/sync/errgroup"

	"sandbox/api"
	"sandbox/core/fault"
)

// packedAhead is how many layers of an export are in files at once: one that is
// written while another one is packed.
const packedAhead = 2

// parcel is a layer that was packed.
type parcel struct {
	packedLayer
	file *os.File // the compressed tar, which has no name
}

// queue is the layers of an image that are packed for an export.
type queue struct {
	s      *Store
	info   Info
	how    api.Compression
	report func(Progress)

	work  *errgroup.Group
	ahead chan chan parcel // in the order of the layers
	all   []chan parcel    // all that were in ahead
}

// packInOrder packs the layers of an image, some of them at once, and hands each
// to use in the order of the layers. It returns what they are packed.
func (s *Store) packInOrder(ctx context.Context, info Info, how api.Compression, report func(Progress), use func(parcel) error) ([]packedLayer, error) {
	q := &queue{s: s, info: info, how: how, report: report, ahead: make(chan chan parcel, packedAhead-1)} // besides the one that is used
	q.work, ctx = errgroup.WithContext(ctx)
	var packed []packedLayer
	q.work.Go(func() error { return q.packAll(ctx) })
	q.work.Go(func() (err error) {
		packed, err = q.useAll(ctx, use)
		return err
	})
	err := q.work.Wait()
	q.drop()
	return packed, err
}

// packAll starts to pack each layer when there is room for it.
func (q *queue) packAll(ctx context.Context) error {
	defer close(q.ahead)
	for i := range q.info.Layers {
		one := make(chan parcel, 1)
		select {
		case q.ahead <- one:
		case <-ctx.Done():
			return fault.Of(ctx.Err()) // unless another goroutine has ended it, which is the first to say why
		}
		q.all = append(q.all, one)
		q.work.Go(func() error { return q.pack(ctx, i, one) })
	}
	return nil
}

func (q *queue) pack(ctx context.Context, i int, to chan<- parcel) error {
	f, p, err := q.s.pack(ctx, q.info.Layers[i], q.how, func(done int64) { q.tell(i, api.LayerPacking, done, 0) })
	if err == nil {
		to <- parcel{p, f}
	}
	return err
}

func (q *queue) tell(i int, stage api.ImageStage, done, total int64) {
	q.report(Progress{Layer: i + 1, Layers: len(q.info.Layers), Stage: stage, Done: done, Total: total})
}

// useAll hands the layers to use, and returns what they are packed.
func (q *queue) useAll(ctx context.Context, use func(parcel) error) (packed []packedLayer, err error) {
	for one := range q.ahead {
		select {
		case p := <-one:
			err := use(p)
			_ = p.file.Close()
			if err != nil {
				return nil, err
			}
			packed = append(packed, p.packedLayer)
			q.tell(len(packed)-1, api.LayerDone, p.Plain, p.Plain)
		case <-ctx.Done():
			return nil, fault.Of(ctx.Err())
		}
	}
	return packed, nil
}

// drop closes the files that nobody has used, after a failure.
func (q *queue) drop() {
	for _, one := range q.all {
		select {
		case p := <-one:
			_ = p.file.Close()
		default:
		}
	}
}
