package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// pieceSize is how many bytes of a tar are written to the child at a time.
const pieceSize = 256 << 10

// Unpack extracts a plain tar stream into the new directory dir of the home, in
// a child of the shim; see [image.Unpacker]. On failure, also of tar itself, dir
// is removed. When ctx ends, tar must fail: the child ends with it, and nobody
// works in dir any more when Unpack returns.
func (c *Client) Unpack(ctx context.Context, tar io.Reader, dir string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return fault.Wrap(fault.ResourceExhausted, err, "make a pipe")
	}
	copied := make(chan error, 1)
	go func() {
		// io.Copy is avoided: it would copy pieces of only 32 KiB.
		_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{tar}, make([]byte, pieceSize))
		if errors.Is(err, unix.EPIPE) {
			err = nil // the child gave up, and the shim's answer says why
		}
		copied <- errors.Join(err, w.Close())
	}()
	// Cut off, the request would go on in the shim: it ends with its tar instead.
	err = c.shim.ask(context.WithoutCancel(ctx), wire.TypeUnpack, wire.Unpack{Dir: dir}, nil, int(r.Fd()))
	_ = r.Close()
	if err != nil && ctx.Err() != nil { // the child knows only that the tar has no end
		err = fault.Of(fmt.Errorf("unpack a layer: %w", ctx.Err()))
	}
	if failed := <-copied; failed != nil {
		_ = c.Discard(dir)
		return errors.Join(failed, err)
	}
	return err
}

// Discard removes a directory of the home's layers. What belongs to other ids of a user who
// is not root the shim removes; see [image.Config].
func (c *Client) Discard(dir string) error {
	err := os.RemoveAll(dir)
	if os.Geteuid() == 0 || !errors.Is(err, os.ErrPermission) {
		return err
	}
	return c.shim.ask(context.Background(), wire.TypeDiscard, wire.Unpack{Dir: dir}, nil)
}

// Flush makes the shim write the home's layers to disk, and does not wait until
// that is done; see [image.Unpacker].
func (c *Client) Flush(ctx context.Context) error {
	return c.shim.ask(ctx, wire.TypeFlush, nil, nil)
}
