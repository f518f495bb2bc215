package image

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"

	"sandbox/core/fault"
)

// reach says which addresses a registry may lead to, by a redirect or as the place of
// its login. Those of this host and of what runs it answer whoever asks from here: only
// who names a registry there may lead to it.
type reach struct {
	own   string   // host:port of the registry, as the user has named it
	local bool     // the registry is on this host's loopback
	via   sync.Map // host:port of each proxy that was used
}

// metadata are addresses of services that tell a machine of a cloud its secrets, beside
// those of its link.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("192.0.0.192"),
}

// toward returns the reach of a registry.
func toward(registry string) *reach {
	u := url.URL{Host: registry}
	return &reach{own: withPort(&u), local: loopback(u.Hostname())}
}

func loopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

// withPort returns the host and port of an address. That of a registry has no scheme,
// and none the port of TLS.
func withPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	}
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// proxied returns the Proxy of an [http.Transport] that asks proxy. A proxy is the
// user's, wherever it is.
func (r *reach) proxied(proxy func(*http.Request) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	if proxy == nil {
		return nil
	}
	return func(req *http.Request) (*url.URL, error) {
		u, err := proxy(req)
		if u != nil {
			r.via.Store(withPort(u), true)
		}
		return u, err
	}
}

// dial connects with d. Errors: Upstream, where the address is closed.
func (r *reach) dial(ctx context.Context, d net.Dialer, network, address string) (net.Conn, error) {
	if _, proxy := r.via.Load(strings.ToLower(address)); !proxy && !strings.EqualFold(address, r.own) {
		d.Control = func(_, found string, _ syscall.RawConn) error { return r.check(found) } // once its name is resolved
	}
	return d.DialContext(ctx, network, address)
}

func (r *reach) check(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := at.Addr().Unmap().WithZone("")
	closed := ip.IsLoopback() && !r.local || ip.IsUnspecified() && !r.local || ip.IsLinkLocalUnicast() || ip.IsMulticast()
	for _, other := range metadata {
		closed = closed || ip == other
	}
	if closed {
		return fault.New(fault.Upstream, "the registry leads to %s, an address of this host or of what runs it, which no registry may lead to", ip)
	}
	return nil
}
