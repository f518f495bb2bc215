package engine

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// Removals calls gone each time that boxes of the home were removed, by
// whichever process, until ctx ends. Several removals may come as one call; none
// is left out. Errors: Storage, ResourceExhausted (the host's watches).
func (c *Client) Removals(ctx context.Context, gone func()) error {
	return c.follow(ctx, unix.IN_DELETE|unix.IN_MOVED_FROM, gone)
}

// Changes calls changed each time that boxes of the home are in another state,
// new or gone, by whichever process, until ctx ends. Several changes may come
// as one call; none is left out. Errors: as Removals.
func (c *Client) Changes(ctx context.Context, changed func()) error {
	return c.follow(ctx, unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO, changed)
}

// follow calls call for events of the directory of records.
func (c *Client) follow(ctx context.Context, events uint32, call func()) error {
	if err := os.MkdirAll(c.records.Path, 0o700); err != nil {
		return fault.Disk(err, "make the directory of boxes")
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fault.Wrap(fault.ResourceExhausted, err, "watch the boxes of the home")
	}
	f := os.NewFile(uintptr(fd), "inotify")
	defer f.Close()
	if _, err := unix.InotifyAddWatch(fd, c.records.Path, events|unix.IN_ONLYDIR); err != nil {
		return fault.Wrap(fault.ResourceExhausted, err, "watch the boxes of the home")
	}
	defer context.AfterFunc(ctx, func() { _ = f.Close() })()
	for buffer := make([]byte, 64<<10); ; {
		// What is read does not matter: call looks at all boxes, so that
		// events which the kernel had no room for are made good, too.
		if _, err := f.Read(buffer); errors.Is(err, os.ErrClosed) {
			return nil
		} else if err != nil {
			return fault.Wrap(fault.Internal, err, "watch the boxes of the home")
		}
		call()
	}
}
