package engine

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/sockets"
)

// Dial returns a connection to the init of a box; see [inits.Boxes].
func (c *Client) Dial(_ context.Context, id string, polled bool) (*wire.Conn, error) {
	if !ids.Box.Valid(id) {
		return nil, fault.New(fault.BoxNotFound, "no box %q", id)
	}
	dir, err := sockets.OpenDir(record.Dir(c.home, id))
	if err != nil {
		return nil, c.Explain(id, err)
	}
	defer dir.Close()
	dial := wire.Dial
	if polled {
		dial = wire.DialPolled
	}
	conn, err := dial(dir, wire.InitSocket)
	if err != nil {
		return nil, c.Explain(id, err)
	}
	return conn, nil
}

// Explain returns err if it is classified; otherwise it finds out from the
// box's record why the box's init can't be reached.
func (c *Client) Explain(id string, err error) error {
	if fault.Classified(err) {
		return err
	}
	b, missing := c.get(id)
	short, known := fault.Host(errors.Join(err, missing))
	switch {
	case known && short == fault.ResourceExhausted:
		return fault.Wrap(fault.ResourceExhausted, err, "reach box %s: this process or the host is out of file descriptors or memory, raise the limit (ulimit -n) or use less at once", id)
	case missing != nil:
		return missing
	case !b.Status.Up():
		return b.NotRunning()
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fault.Of(err)
	case b.Init.Ended(), errors.Is(err, unix.ECONNREFUSED), wire.CutOff(err) && b.Init.EndsWithin(dying):
		// The init is ending or has ended; the record will soon say so.
		return fault.New(fault.InvalidState, "box %s is stopping: wait until it has stopped, or remove it", id)
	}
	return fault.Wrap(fault.Engine, err, "the init of box %s does not answer: stop the box, or remove it by force", id)
}

// dying is how long a box's init may take to end after the kernel has closed its
// connections, which it does a little earlier.
const dying = time.Second
