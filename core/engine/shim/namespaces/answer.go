package namespaces

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/shim/network"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// serve answers a client. asked is how often a shim had asked for the namespaces when it came.
func (o *outside) serve(conn *wire.Conn, asked int) {
	for {
		f, err := conn.Recv()
		if err != nil {
			return
		}
		f.CloseFDs()
		if f.Type == wire.TypeAddresses {
			o.tellAddresses(conn)
			return
		}
		t, body, fds, err := o.answer(f, asked)
		if err != nil {
			e := fault.Of(err)
			t, body = wire.TypeError, wire.Error{Kind: e.Kind, Message: e.Message}
			o.log.Info("request failed", "type", f.Type, "error", err)
		}
		err = conn.Send(t, body, fds...)
		if f.Type == wire.TypeListen {
			for _, fd := range fds {
				_ = unix.Close(fd)
			}
		}
		if err != nil {
			return
		}
	}
}

// tellAddresses tells a shim the host's addresses until it hangs up.
func (o *outside) tellAddresses(conn *wire.Conn) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	left, stop := conn.Watch()
	defer stop()
	go func() {
		defer cancel()
		select {
		case <-left:
		case <-ctx.Done():
		}
	}()
	err := network.WatchOwn(ctx, func(own []netip.Prefix) error {
		return conn.Send(wire.TypeOwn, wire.Own{Prefixes: own})
	})
	if ctx.Err() == nil {
		o.log.Error("follow the host's addresses", "error", err)
	}
}

func (o *outside) answer(f wire.Frame, asked int) (wire.Type, any, []int, error) {
	switch f.Type {
	case wire.TypeLeave:
		o.leave(asked)
		return wire.TypeDone, nil, nil, nil
	case wire.TypeNamespaces:
		o.expect()
		return wire.TypeDone, nil, []int{int(o.spaces.user.Fd()), int(o.spaces.net.Fd())}, nil
	case wire.TypeUplink:
		connected, err := o.uplink.connect()
		return wire.TypeConnected, connected, nil, err
	case wire.TypeListen:
		var r wire.Listen
		if err := f.Decode(&r); err != nil {
			return 0, nil, nil, err
		}
		fd, port, err := listen(r)
		if err != nil {
			var errno unix.Errno
			if !errors.As(err, &errno) {
				return 0, nil, nil, err
			}
			return wire.TypeListening, wire.Listening{Errno: int(errno)}, nil, nil
		}
		return wire.TypeListening, wire.Listening{Port: port}, []int{fd}, nil
	}
	return 0, nil, nil, fault.New(fault.Engine, "the process outside does not know request %d", f.Type)
}

// listen makes a socket that is bound to an address, and for TCP listens.
func listen(r wire.Listen) (fd, port int, err error) {
	kind, family := unix.SOCK_STREAM, unix.AF_INET
	if r.UDP {
		kind = unix.SOCK_DGRAM
	}
	port = int(r.Address.Port())
	var at unix.Sockaddr
	switch ip := r.Address.Addr(); {
	case ip.Is4():
		at = &unix.SockaddrInet4{Port: port, Addr: ip.As4()}
	case ip.Is6():
		family, at = unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: ip.As16()}
	default:
		return -1, 0, unix.EINVAL
	}
	if fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return -1, 0, err
	}
	if family == unix.AF_INET6 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}
	if err == nil && !r.UDP {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err == nil {
		err = unix.Bind(fd, at)
	}
	if err == nil && !r.UDP {
		err = unix.Listen(fd, unix.SOMAXCONN)
	}
	if err == nil {
		port, err = portOf(fd)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, 0, err
	}
	return fd, port, nil
}

func portOf(fd int) (int, error) {
	at, err := unix.Getsockname(fd)
	switch a := at.(type) {
	case *unix.SockaddrInet4:
		return a.Port, nil
	case *unix.SockaddrInet6:
		return a.Port, nil
	}
	return 0, fmt.Errorf("find the port of a socket: %w", err)
}
