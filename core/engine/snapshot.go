package engine

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/image/layer"
)

// Snapshot makes a layer of the disk of a box; see [core.Boxes].
func (c *Client) Snapshot(ctx context.Context, id, layer string) (core.Taken, error) {
	if err := c.config.checkDisk(); err != nil {
		return core.Taken{}, err
	}
	var taken wire.Taken
	err := c.shim.ask(ctx, wire.TypeSnapshot, wire.Snapshot{ID: id, Layer: layer}, &taken)
	return core.Taken{Image: core.Image(taken.Image), Paused: time.Duration(taken.PausedUS) * time.Microsecond}, err
}

// Finish makes a layer of the disk of a box that is not needed any more; see
// [core.Boxes].
func (c *Client) Finish(ctx context.Context, id, layer string) (core.Image, error) {
	if err := c.config.checkDisk(); err != nil {
		return core.Image{}, err
	}
	var taken wire.Taken
	err := c.shim.ask(ctx, wire.TypeSnapshot, wire.Snapshot{ID: id, Layer: layer, Last: true}, &taken)
	if err == nil {
		if err = c.Remove(ctx, id, true); fault.Is(err, fault.BoxNotFound) { // an old shim has left it
			err = nil
		}
	}
	return core.Image(taken.Image), err
}

// Rollback gives a box other layers and an empty disk; see [core.Boxes].
func (c *Client) Rollback(ctx context.Context, id string, layers []string) (core.Record, error) {
	if err := c.config.checkDisk(); err != nil {
		return core.Record{}, err
	}
	var rec core.Record
	err := c.shim.ask(ctx, wire.TypeRollback, wire.Rollback{ID: id, Layers: layers}, &rec)
	return c.timed(rec, err)
}

// Diff returns a page of what has changed on the disk of a box; see [core.Boxes].
func (c *Client) Diff(ctx context.Context, id string, d core.DiffRequest) ([]api.Change, bool, error) {
	b, err := c.get(id)
	if err != nil {
		return nil, false, err
	}
	if os.Geteuid() != 0 {
		return nil, false, fault.New(fault.Unsupported, "the diff of a box needs root, who alone sees whose its files are: docs/rootless.md")
	}
	if b.Options.RootfsPath != "" {
		return nil, false, fault.New(fault.Unsupported, "box %s stands on a directory of the host (rootfs_path) and not on an image", id)
	}
	layers, base := b.Layers(), b.Image.Layers
	if d.Base != nil {
		base = layer.Squashed(d.Base, len(base))
	}
	shared := layer.Common(base, layers)
	if shared == 0 {
		return nil, false, fault.New(fault.InvalidArgument, "box %s does not stand on the image of that snapshot", id)
	}
	opened, err := c.openDisks(ctx, wire.OpenDisks{Layers: slices.Concat(layers[:shared], base[shared:], layers[shared:]), Box: id})
	if err != nil {
		return nil, false, err
	}
	defer closeFiles(opened)
	changes, more := []api.Change{}, false
	states := layer.States{Common: opened[:shared], Old: opened[shared:len(base)], Now: opened[len(base):], Ours: b.Made}
	err = layer.Diff(states, d.After, func(change api.Change) bool {
		if more = len(changes) == d.Limit; !more {
			changes = append(changes, change)
		}
		return !more && ctx.Err() == nil
	})
	return changes, more, cmp.Or(err, ctx.Err())
}

// Pack writes the layer in dir to w as a plain tar; see [image.Unpacker]. For a user who is
// not root the shim does it, who is root of the namespace that the owners are of.
func (c *Client) Pack(ctx context.Context, dir string, w io.Writer) error {
	if os.Geteuid() != 0 {
		return c.packInShim(ctx, dir, w)
	}
	root, err := c.openLayer(ctx, dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return layer.Pack(ctx, root, w, layer.DefaultLimits)
}

func (c *Client) packInShim(ctx context.Context, dir string, w io.Writer) error {
	r, theirs, err := os.Pipe()
	if err != nil {
		return fault.Wrap(fault.ResourceExhausted, err, "make a pipe")
	}
	packed := make(chan error, 1)
	go func() {
		err := c.shim.ask(ctx, wire.TypePack, wire.Unpack{Dir: dir}, nil, int(theirs.Fd()))
		_ = theirs.Close()
		if err != nil {
			_ = r.Close() // nobody may be left who ends the tar
		}
		packed <- err
	}()
	_, copied := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, pieceSize))
	_ = r.Close() // else the shim would wait for a reader
	err = <-packed
	if copied != nil && !errors.Is(copied, os.ErrClosed) {
		return copied
	}
	return err
}

// openLayer opens the directory in which the files of a layer are.
func (c *Client) openLayer(ctx context.Context, dir string) (*os.File, error) {
	if !layer.IsDisk(dir) {
		f, err := os.Open(dir)
		return f, fault.Disk(err, "open a layer")
	}
	opened, err := c.openDisks(ctx, wire.OpenDisks{Layers: []string{dir}})
	if err != nil {
		return nil, err
	}
	return opened[0], nil
}

// openDisks opens the directories in which the files of layers and of a box are. The
// caller closes them.
func (c *Client) openDisks(ctx context.Context, r wire.OpenDisks) (opened []*os.File, err error) {
	defer func() {
		if err != nil {
			closeFiles(opened)
		}
	}()
	const most = wire.MaxFDs - 1 // of layers at once, as the box's own comes with the last ones
	for {
		part := wire.OpenDisks{Layers: r.Layers[:min(most, len(r.Layers))]}
		if r.Layers = r.Layers[len(part.Layers):]; len(r.Layers) == 0 {
			part.Box = r.Box
		}
		var fds []int
		if err := c.shim.ask(ctx, wire.TypeOpenDisks, part, &fds); err != nil {
			return opened, err
		}
		for _, fd := range fds {
			opened = append(opened, os.NewFile(uintptr(fd), "layer"))
		}
		if len(fds) < len(part.Layers) {
			return opened, fault.Wrap(fault.Engine, wire.ErrProtocol, "open the layers of a box")
		}
		if len(r.Layers) == 0 {
			return opened, nil
		}
	}
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
