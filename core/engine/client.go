// Package engine is the host side of isolation: it starts the helper of a
// home, asks it for boxes, and talks to each box's init.
package engine

import (
	"context"
	"io"
	"time"

	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// Config says where the engine's home and helpers are.
type Config struct {
	Home      string // absolute
	HelperDir string // where the helpers are; "" looks around
	Beside    string // folder of the library or program in use
	Version   string // that the helpers must have
}

// Client is the real [core.Engine].
type Client struct{ c Config }

var errNotYet = fault.New(fault.Unsupported, "not yet")

// Open checks the home and finds the helpers.
func Open(c Config) (*Client, error) { return &Client{c}, nil }

func (c *Client) Create(ctx context.Context, req core.CreateRequest) (core.Record, error) {
	return core.Record{}, errNotYet
}
func (c *Client) Start(ctx context.Context, id string) (core.Record, error) {
	return core.Record{}, errNotYet
}
func (c *Client) Stop(ctx context.Context, id string, grace time.Duration) (core.Record, error) {
	return core.Record{}, errNotYet
}
func (c *Client) Remove(ctx context.Context, id string, force bool) error { return errNotYet }
func (c *Client) List(ctx context.Context) ([]core.Record, error)         { return nil, errNotYet }
func (c *Client) Get(ctx context.Context, id string) (core.Record, error) {
	return core.Record{}, errNotYet
}
func (c *Client) Exec(ctx context.Context, id string, o options.Exec) (*core.Process, error) {
	return nil, errNotYet
}
func (c *Client) Usage(ctx context.Context, id string) (core.Usage, error) {
	return core.Usage{}, errNotYet
}
func (c *Client) Close() error { return nil }

// Unpack is the image store's Unpacker.
func (c *Client) Unpack(ctx context.Context, tar io.Reader, dir string) error { return errNotYet }
