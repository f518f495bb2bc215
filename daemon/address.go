package daemon

import (
	"errors"
	"io/fs"
	"net"
	"path/filepath"

	"sandbox/core/store"
)

// Address says where the daemon of a home listens, or listened when it last ran.
type Address struct {
	URL     string `json:"url,omitempty"` // base of its routes over TCP, with /api if Hosted; "" without TCP
	Socket  string `json:"socket"`
	Prefix  string `json:"prefix,omitempty"`
	Hosted  bool   `json:"hosted,omitempty"`
	Profile string `json:"profile,omitempty"` // name of the profile with the administrator's key
}

// addressKey names the one record of its directory.
const addressKey = "address"

func addresses(home string) store.Dir[Address] {
	return store.Dir[Address]{Path: filepath.Join(home, "daemon")}
}

// ReadAddress returns the address of the home's daemon, or the zero value if the
// home never had one. It does not say whether the daemon runs: only connecting to
// its socket can tell. Errors: Storage.
func ReadAddress(home string) (Address, error) {
	a, err := addresses(home).Get(addressKey)
	if errors.Is(err, fs.ErrNotExist) {
		return Address{}, nil
	}
	return a, err
}

// address returns the address of a daemon with the settings s. l is its TCP
// listener, or nil without one.
func (s settings) address(l net.Listener) Address {
	a := Address{Socket: s.Socket, Prefix: s.Prefix, Hosted: s.Hosted}
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
