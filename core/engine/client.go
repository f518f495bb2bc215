// Package engine is the host side of isolation: it starts the shim of a home,
// sends it the requests for boxes, and talks to each box's init.
package engine

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/inits"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/options"
	"sandbox/core/store"
)

// Config says where the engine's home and programs are.
type Config struct {
	Home      string // absolute
	HelperDir string // directory of the programs; "" searches the usual places
	Beside    string // directory of the library or program in use; "" for none
	// Cached keeps the records in memory, for a process that needs them all
	// the time. They are as fresh as those on disk, and cost the process a few
	// descriptors.
	Cached bool
	// DiskFloorMiB is how many MiB of the home's disk must stay free: with
	// less, no box is created or started. 0 means no floor, and
	// [DefaultDiskFloor] means 5 % of the disk or 1 GiB, whichever is less.
	DiskFloorMiB int
	// Pool is how many spares the home's shim keeps ready for creates like the
	// last ones. The last create of the home counts. Below 0 each create makes
	// a spare and then the box of it, which is for tests.
	Pool int
}

// Client is the real [core.Engine]: boxes of Linux namespaces, made by the
// shim of the home. It is safe for concurrent use.
type Client struct {
	*inits.Client
	home    string
	config  Config
	records store.Dir[record.Box]
	cache   *cache // nil unless Config.Cached is set
	shim    shim
	guard   guard
}

var _ core.Engine = (*Client)(nil)

// Open checks the home, creating it if it is missing, and finds the programs.
// It starts nothing. Errors: Storage (the home can't be created or written),
// Engine (a program is missing: the message names every place tried).
func Open(c Config) (*Client, error) {
	if err := checkHome(c.Home); err != nil {
		return nil, err
	}
	programs, err := findPrograms(c.HelperDir, c.Beside)
	if err != nil {
		return nil, err
	}
	return newClient(c, programs), nil
}

func newClient(c Config, programs paths) *Client {
	client := &Client{home: c.Home, config: c, records: record.Open(c.Home), shim: shim{home: c.Home, programs: programs, settles: c.Pool != 0}}
	client.Client = inits.New(client, false)
	if c.Cached {
		client.cache = &cache{dir: client.records}
	}
	return client
}

func checkHome(home string) error {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return fault.Disk(err, "make the home %s", home)
	}
	if err := unix.Access(home, unix.W_OK|unix.X_OK); err != nil {
		return fault.Disk(err, "use the home %s", home)
	}
	return nil
}

// Create creates a box and starts it; see [core.Engine].
func (c *Client) Create(ctx context.Context, req core.CreateRequest) (core.Record, error) {
	var rec core.Record
	if err := c.config.checkDisk(); err != nil {
		return rec, err
	}
	asked := record.ToWire(req)
	asked.Pool = c.config.Pool
	err := c.shim.ask(ctx, wire.TypeCreate, asked, &rec)
	if err != nil && ctx.Err() != nil {
		// The shim may still finish the box, and nobody would know of it.
		_ = c.Remove(context.WithoutCancel(ctx), req.ID, true)
	}
	return c.timed(rec, err)
}

// Start starts a stopped box; see [core.Engine].
func (c *Client) Start(ctx context.Context, id string) (core.Record, error) {
	if err := c.config.checkDisk(); err != nil {
		return core.Record{}, err
	}
	return c.timed(c.change(ctx, wire.TypeStartBox, wire.BoxRequest{ID: id}, api.Running))
}

// Stop stops a running box; see [core.Engine].
func (c *Client) Stop(ctx context.Context, id string, grace time.Duration) (core.Record, error) {
	return c.change(ctx, wire.TypeStopBox, wire.BoxRequest{ID: id, GraceMS: grace.Milliseconds()}, api.Stopped)
}

// Pause has the processes of a running box stand still; see [core.Engine].
func (c *Client) Pause(ctx context.Context, id string, reclaim bool) (core.Record, error) {
	return c.change(ctx, wire.TypePauseBox, wire.BoxRequest{ID: id, Reclaim: reclaim}, api.Paused)
}

// Resume lets the processes of a paused box go on; see [core.Engine].
func (c *Client) Resume(ctx context.Context, id string) (core.Record, error) {
	return c.timed(c.change(ctx, wire.TypeResumeBox, wire.BoxRequest{ID: id}, api.Running))
}

// Update changes the options of a box; see [core.Engine].
func (c *Client) Update(ctx context.Context, id string, u options.Update) (core.Record, error) {
	var rec core.Record
	err := c.shim.ask(ctx, wire.TypeUpdateBox, wire.UpdateBox{ID: id, TTLSeconds: u.TTLSeconds, IdleSeconds: u.IdleSeconds, OnExpiry: u.OnExpiry, AutoStart: u.AutoStart}, &rec)
	return c.timed(rec, err)
}

// change asks for another status of a box. A request that was sent twice may be
// refused because the shim that has gone did what was asked: that is success.
func (c *Client) change(ctx context.Context, t wire.Type, r wire.BoxRequest, want api.BoxStatus) (core.Record, error) {
	var rec core.Record
	twice, err := c.shim.askAgain(ctx, t, r, &rec)
	if twice && fault.Is(err, fault.InvalidState) {
		if now, missing := c.Get(ctx, r.ID); missing == nil && now.Status == want {
			return now, nil
		}
	}
	return rec, err
}

// Remove removes a box; see [core.Engine].
func (c *Client) Remove(ctx context.Context, id string, force bool) error {
	twice, err := c.shim.askAgain(ctx, wire.TypeRemoveBox, wire.BoxRequest{ID: id, Force: force}, nil)
	if twice && fault.Is(err, fault.BoxNotFound) {
		return nil // the shim that has gone has removed it
	}
	return err
}

// Sweep removes boxes that have stopped or failed; see [core.Boxes].
func (c *Client) Sweep(ctx context.Context, olderThan time.Duration) (core.Swept, error) {
	var swept wire.Swept
	if err := c.shim.ask(ctx, wire.TypeSweep, wire.Sweep{OlderMS: olderThan.Milliseconds()}, &swept); err != nil {
		return core.Swept{}, err
	}
	done := core.Swept{Boxes: swept.Boxes, Bytes: swept.Bytes}
	if swept.Error != nil {
		return done, swept.Error.Failure()
	}
	return done, nil
}

// Expiries returns what the shims of the home have counted; see [core.Boxes].
func (c *Client) Expiries(context.Context) (core.Expiries, error) {
	return record.OpenExpiries(c.home).Get()
}

// List returns the records of the home. It needs no shim. A box whose record
// is damaged is listed as failed.
func (c *Client) List(context.Context) ([]core.Record, error) {
	if c.cache != nil {
		return c.cache.all()
	}
	return readAll(c.records)
}

func readAll(records store.Dir[record.Box]) ([]core.Record, error) {
	boxes, damaged, err := records.List()
	if err != nil {
		return nil, err
	}
	for _, d := range damaged {
		if ids.Box.Valid(d.Key) {
			boxes = append(boxes, record.OfDamaged(d))
		}
	}
	recs := make([]core.Record, len(boxes))
	for i := range boxes {
		boxes[i].Correct()
		recs[i] = boxes[i].Record
	}
	slices.SortFunc(recs, newestFirst)
	return recs, nil
}

func newestFirst(a, b core.Record) int {
	if n := b.CreatedAt.Compare(a.CreatedAt); n != 0 {
		return n
	}
	return strings.Compare(a.ID, b.ID)
}

// Get returns one box's record. Errors: BoxNotFound.
func (c *Client) Get(_ context.Context, id string) (core.Record, error) {
	b, err := c.get(id)
	return b.Record, err
}

func (c *Client) get(id string) (record.Box, error) {
	if !ids.Box.Valid(id) {
		return record.Box{}, fault.New(fault.BoxNotFound, "no box %q", id)
	}
	if c.cache != nil {
		if b, ok := c.cache.get(id); ok {
			return b, nil
		}
	}
	b, err := c.records.Get(id)
	if errors.Is(err, os.ErrNotExist) {
		return b, fault.New(fault.BoxNotFound, "no box %q", id)
	}
	if errors.Is(err, store.ErrDamaged) {
		return record.OfDamaged(c.records.Damage(id, err)), nil
	}
	if err == nil {
		b.Correct()
	}
	return b, err
}

// Images returns the images that boxes were made from; see [image.Config]. It
// fails while a record is damaged, since that box's image is unknown.
func (c *Client) Images() ([]core.ImageUse, error) {
	boxes, damaged, err := c.records.List()
	if err = errors.Join(err, store.Errors(damaged)); err != nil {
		return nil, err
	}
	var all []core.ImageUse
	for _, b := range boxes {
		img := b.Image
		img.Layers = b.Layers()
		if b.Merged != "" {
			img.Layers = append(img.Layers, b.Merged)
		}
		if b.Returning != nil {
			img.Layers = append(img.Layers, *b.Returning...)
		}
		all = append(all, core.ImageUse{Box: cmp.Or(b.Options.Name, b.ID), Image: img})
	}
	return all, nil
}

// Close closes the connections to the shim, which exits once nobody needs it. Where
// there is a pool it waits for a spare that is being made, some 25 ms: unless the
// home has other clients, it may be removed then.
func (c *Client) Close() error {
	c.guard.close()
	if c.cache != nil {
		c.cache.close()
	}
	c.shim.close()
	return nil
}
