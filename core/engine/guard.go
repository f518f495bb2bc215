package engine

import (
	"context"
	"sync"
	"time"

	"sandbox/core"
	"sandbox/core/engine/process"
)

// guard starts the next shim when the home's one dies while boxes have a time: the
// shim keeps it, and without guard the next one would come with the next request.
type guard struct {
	begin sync.Once
	end   context.CancelFunc
	done  chan struct{} // closed at the end
}

// Guard has the boxes of the home end at their time also when its shim dies. It goes
// on until Close. A client that makes a box with a time guards by itself.
func (c *Client) Guard() {
	c.guard.begin.Do(func() {
		ctx, end := context.WithCancel(context.Background())
		c.guard.end, c.guard.done = end, make(chan struct{})
		go func() {
			defer close(c.guard.done)
			c.keepTimes(ctx)
		}()
	})
}

// close ends the guard, and its later begin.
func (g *guard) close() {
	g.begin.Do(func() {})
	if g.end != nil {
		g.end()
		<-g.done
	}
}

// timed guards from now on if a box has a time.
func (c *Client) timed(rec core.Record, err error) (core.Record, error) {
	if err == nil && rec.Timed() {
		c.Guard()
	}
	return rec, err
}

// retrying is how long to wait before another try to start a shim: nothing tells when
// one would work.
const retrying = time.Second

// keepTimes waits for changes of boxes, and for the end of the shim while a box has a
// time.
func (c *Client) keepTimes(ctx context.Context) {
	changed := make(chan struct{}, 1)
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() {
		_ = c.Changes(ctx, func(bool) { // without it, a request that names a time tells too late
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	})
	var shim <-chan struct{} // closed at the end of the shim; nil while it is not known
	for ctx.Err() == nil {
		var again <-chan time.Time
		if shim == nil && c.haveTimes(ctx) {
			if shim = c.watchShim(ctx, &watching); shim == nil {
				again = time.After(retrying)
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-again:
		case <-shim:
			shim = nil
		}
	}
}

// haveTimes reports whether a box of the home has a time.
func (c *Client) haveTimes(ctx context.Context) bool {
	recs, err := c.List(ctx)
	for _, rec := range recs {
		if rec.Timed() {
			return true
		}
	}
	return err != nil // which is not known to be so
}

// watchShim returns a channel that is closed when the home's shim has ended. It starts
// one if none runs, and returns nil if it can't.
func (c *Client) watchShim(ctx context.Context, watching *sync.WaitGroup) <-chan struct{} {
	h, err := c.shim.hold(ctx)
	if err != nil {
		return nil
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { _ = h.Close() })
	watching.Go(func() {
		defer close(ended)
		_ = h.Wait()
		if stop() {
			_ = h.Close()
		}
	})
	return ended
}

// hold returns a handle of the home's shim, which it starts if none runs.
func (s *shim) hold(ctx context.Context) (*process.Handle, error) {
	conn, err := s.dial(ctx)
	if err != nil && gone(err) {
		conn, err = s.start(ctx)
	}
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	pid, err := conn.Peer()
	if err != nil {
		return nil, err
	}
	return process.Hold(pid)
}
