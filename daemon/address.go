package daemon

import (
	"net"

	"sandbox/daemon/address"
)

// address returns the address of a daemon with the settings s. l is its TCP
// listener, or nil without one.
func (s settings) address(l net.Listener) address.Address {
	a := address.Address{Socket: s.Socket, Prefix: s.Prefix, Hosted: s.Hosted}
	if l == nil {
		return a
	}
	scheme, mount := "http://", ""
	if s.tls != nil {
		scheme = "https://"
	}
	if s.Hosted {
		mount = "/api"
	}
	a.URL = scheme + reachable(l.Addr().String()) + mount
	return a
}

// reachable replaces 0.0.0.0 and ::, which stand for all addresses of the host, by
// the loopback address, which a client on the host can connect to.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}
