// Package inits speaks with the inits of boxes: it runs commands in boxes and works on
// their files. It is the part of an engine that is the same wherever a box is.
package inits

import (
	"context"
	"errors"
	"time"

	"sandbox/core"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// Boxes is how a Client reaches the init of a box. It is safe for concurrent use.
type Boxes interface {
	// Get returns the record of a box. Errors: BoxNotFound.
	Get(ctx context.Context, id string) (core.Record, error)
	// Dial returns a connection to the init of a box, which is the caller's. With
	// polled, its calls wait in Go's poller and block no thread. The error is one that
	// Explain returned.
	Dial(ctx context.Context, id string, polled bool) (*wire.Conn, error)
	// Explain returns err if it is classified. Otherwise it finds out why the init
	// of a box could not be reached, or ended a connection.
	Explain(id string, err error) error
}

// Client is the client of the inits of boxes. It implements [core.Execs] and
// [core.Files], and is safe for concurrent use.
type Client struct {
	boxes   Boxes
	far     bool
	reading reading
}

// New returns a client. far says that the boxes are on other hosts: a terminal is a
// socket here then, whose other end somebody connects to the terminal.
func New(boxes Boxes, far bool) *Client { return &Client{boxes: boxes, far: far} }

// answerTimeout bounds how long a box's init may take to answer. The box may be
// hostile, and must not block the host process.
const answerTimeout = 60 * time.Second

// Stats returns what a box's init has counted. Errors: InvalidState (the box does not
// run, or is stopping), Engine.
func (c *Client) Stats(ctx context.Context, id string) (s wire.Stats, err error) {
	conn, err := c.boxes.Dial(ctx, id, false)
	if err != nil {
		return s, err
	}
	defer conn.Close()
	if err := conn.SetTimeout(answerTimeout); err != nil {
		return s, err
	}
	if err := conn.Ask(ctx, wire.TypeStats, wire.Measure{Read: c.reading.of(id)}, &s); err != nil {
		if fault.Classified(err) {
			return wire.Stats{}, believed(err)
		}
		return wire.Stats{}, c.boxes.Explain(id, errors.Join(ctx.Err(), err))
	}
	return s, nil
}
