package inits

import (
	"context"
	"errors"

	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// resize has init set the size of a terminal. It has it when resize returns: what is
// written to the terminal goes another way, and must not be faster.
func (c *Client) resize(ctx context.Context, box string, r wire.Resize) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, err := c.boxes.Dial(ctx, box, true)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = conn.Ask(ctx, wire.TypeResize, r, nil)
	switch {
	case err == nil:
		return nil
	case fault.Classified(err):
		return believed(err)
	}
	return c.boxes.Explain(box, errors.Join(ctx.Err(), err))
}
