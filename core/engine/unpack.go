package engine

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// pieceSize is how much of a tar goes to the child at a time.
const pieceSize = 256 << 10

// Unpack extracts a plain tar stream into the new directory dir of the home, in a
// child of the shim; see [image.Unpacker]. dir is gone on failure, also when
// it is tar that fails.
func (c *Client) Unpack(ctx context.Context, tar io.Reader, dir string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return fault.Wrap(fault.ResourceExhausted, err, "make a pipe")
	}
	copied := make(chan error, 1)
	go func() {
		// Not io.Copy: it would go back to pieces of 32 KiB.
		_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{tar}, make([]byte, pieceSize))
		if errors.Is(err, unix.EPIPE) {
			err = nil // the child gave up, and says why
		}
		copied <- errors.Join(err, w.Close())
	}()
	err = c.shim.ask(ctx, wire.TypeUnpack, wire.Unpack{Dir: dir}, nil, int(r.Fd()))
	_ = r.Close()
	if failed := <-copied; failed != nil {
		_ = os.RemoveAll(dir)
		return errors.Join(failed, err)
	}
	return err
}

// Flush has the shim write the home's layers to disk, and does not wait for
// it to be done; see [image.Unpacker].
func (c *Client) Flush(ctx context.Context) error {
	return c.shim.ask(ctx, wire.TypeFlush, nil, nil)
}
