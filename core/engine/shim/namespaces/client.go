package namespaces

import (
	"errors"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/process"
	"sandbox/core/engine/shim/network"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// Client asks the process outside of a home. It is safe for concurrent use.
type Client struct {
	home string
	mu   sync.Mutex
	conn *wire.Conn
	left atomic.Bool
}

var _ network.Outside = (*Client)(nil)

// Dial connects the shim of a home to the process outside. gone is called when that
// process has ended.
func Dial(home string, gone func()) (*Client, error) {
	conn, err := dial(home)
	if err != nil {
		return nil, fault.Wrap(fault.Engine, err, "reach the process outside; see %s", logOf(home))
	}
	pid, err := conn.Peer()
	if err != nil {
		return nil, err
	}
	c := &Client{home: home, conn: conn}
	go awaitGone(pid, func() {
		if !c.left.Load() {
			gone()
		}
	})
	return c, nil
}

// Leave tells the process outside that the shim, which ends, is not needed any more.
func (c *Client) Leave() error {
	c.left.Store(true)
	_, err := c.ask(wire.TypeLeave, nil)
	return errors.Join(err, c.conn.Close())
}

// Connect implements [network.Outside].
func (c *Client) Connect() (netip.Prefix, int, error) {
	var r wire.Connected
	f, err := c.ask(wire.TypeUplink, nil)
	if err == nil {
		err = f.Decode(&r)
	}
	return r.Pool, r.MTU, err
}

// Listen implements [network.Outside].
func (c *Client) Listen(at netip.AddrPort, udp bool) (*os.File, int, error) {
	f, err := c.ask(wire.TypeListen, wire.Listen{Address: at, UDP: udp})
	if err != nil {
		return nil, 0, err
	}
	var r wire.Listening
	err = f.Decode(&r)
	if err == nil && r.Errno != 0 {
		err = unix.Errno(r.Errno)
	}
	if err == nil && len(f.FDs) != 1 {
		err = wire.ErrProtocol
	}
	if err != nil {
		f.CloseFDs()
		return nil, 0, err
	}
	return os.NewFile(uintptr(f.FDs[0]), "port"), r.Port, nil
}

// Addresses implements [network.Outside], on a connection of its own.
func (c *Client) Addresses(each func([]netip.Prefix) error) error {
	conn, err := dial(c.home)
	if err != nil {
		return fault.Wrap(fault.Engine, err, "ask for the host's addresses")
	}
	next := func() error {
		f, err := conn.Recv()
		if err != nil {
			return err
		}
		f.CloseFDs()
		var own wire.Own
		if f.Type != wire.TypeOwn {
			return wire.ErrProtocol
		}
		if err := f.Decode(&own); err != nil {
			return err
		}
		return each(own.Prefixes)
	}
	if err = conn.Send(wire.TypeAddresses, nil); err == nil {
		err = next()
	}
	if err == nil {
		err = conn.SetTimeout(0)
	}
	if err != nil {
		return errors.Join(fault.Wrap(fault.Engine, err, "ask for the host's addresses"), conn.Close())
	}
	go func() {
		defer conn.Close()
		for next() == nil {
		}
		c.lost()
	}()
	return nil
}

// lost ends the process outside, and with it the connection, when the host's addresses can't be
// followed any more: else boxes could reach those which come later.
func (c *Client) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pid, err := c.conn.Peer(); err == nil {
		_ = unix.Kill(pid, unix.SIGTERM)
	}
}

func (c *Client) ask(t wire.Type, body any) (wire.Frame, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, err := request(c.conn, t, body)
	if err != nil && !fault.Classified(err) {
		c.renew()
		err = fault.Wrap(fault.Engine, err, "the process outside does not answer; see %s", logOf(c.home))
	}
	return f, err
}

// renew replaces a connection that has failed: the answer may come later, and the next
// request would take it for its own. If there is no other one, requests fail; lost can still
// tell who was at the other end. c.mu is held.
func (c *Client) renew() {
	c.conn.Cut()
	if conn, err := dial(c.home); err == nil {
		_ = c.conn.Close()
		c.conn = conn
	}
}

// awaitGone calls gone once the process has ended.
func awaitGone(pid int, gone func()) {
	if h, err := process.Hold(pid); err == nil {
		_ = h.Wait()
		_ = h.Close()
	}
	gone()
}
