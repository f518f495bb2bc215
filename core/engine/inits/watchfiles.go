package inits

import (
	"bufio"
	"context"
	"errors"
	"io"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/feed"
	"sandbox/core/options"
)

// WatchFiles begins to watch a directory; see [core.Files].
func (c *Client) WatchFiles(ctx context.Context, id string, o options.WatchFiles) (*core.FileWatch, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	t, err := c.transfer(ctx, id, wire.Files{User: o.User}, wire.Move{Operation: wire.Watch, Path: o.Path, Recursive: o.Recursive})
	if err != nil {
		return nil, err
	}
	w := &fileWatch{t: t, base: o.Path, data: t.patient(t.data)}
	w.r = bufio.NewReaderSize(w.data, 64<<10)
	if err := w.begin(); err != nil {
		t.close()
		return nil, err
	}
	return feed.New(feed.Small, w.next, t.cut, t.close), nil
}

// fileWatch reads the events of a child that watches a directory.
type fileWatch struct {
	t     *transfer
	base  string
	data  *patience
	r     *bufio.Reader
	buf   []byte
	ended bool
}

// begin waits until the watch stands.
func (w *fileWatch) begin() error {
	w.data.since = time.Now()
	first, err := wire.ReadRecord(w.r, nil)
	if errors.Is(err, io.EOF) && !errors.Is(err, wire.ErrProtocol) {
		if _, err = w.t.answer(); err == nil {
			err = wire.ErrProtocol
		}
	}
	if err == nil && len(first) > 0 {
		err = wire.ErrProtocol
	}
	w.data.since = time.Time{}
	if err != nil && !fault.Classified(err) {
		err = w.t.broken(err)
	}
	return err
}

// next waits for the next event.
func (w *fileWatch) next() (api.FileEvent, error) {
	if w.ended {
		return api.FileEvent{}, io.EOF
	}
	var err error
	if w.buf, err = wire.ReadRecord(w.r, w.buf); err != nil {
		return w.cutOff(err)
	}
	e, err := wire.ReadEvent(w.buf)
	if err != nil {
		return api.FileEvent{}, w.t.broken(err)
	}
	w.ended = e.Type == api.EndOfWatch
	return e.Document(w.base), nil
}

// initEnds bounds how long the end of a box's init is waited for when a child of it
// has ended without a word.
const initEnds = 2 * time.Second

// cutOff returns the end of a watch whose child has ended without a word: the one
// of its box, if that ends too, or a failure.
func (w *fileWatch) cutOff(err error) (api.FileEvent, error) {
	if w.t.ctx.Err() != nil {
		return api.FileEvent{}, w.t.broken(err)
	}
	timer := time.AfterFunc(initEnds, w.t.conn.Cut)
	_, gone := w.t.conn.Recv() // init sends nothing, so this waits for its end
	if inTime := timer.Stop(); !inTime || gone == nil {
		return api.FileEvent{}, w.t.broken(err)
	}
	w.ended = true
	return api.FileEvent{Type: api.EndOfWatch, Reason: api.WatchBoxStopped}, nil
}
