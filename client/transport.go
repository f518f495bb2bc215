package client

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"sandbox/core/sockets"
)

// expectContinue is how long an upload waits for the server to ask for the
// content. Our servers always ask for it or refuse it, but a proxy in between
// may do neither.
const expectContinue = 5 * time.Second

// newTransport returns a transport that connects to the hosts of requests, or only
// to the Unix socket if that is not "". Each client has its own, because the default
// one is shared by the whole program.
func newTransport(socket string) *http.Transport {
	t := &http.Transport{MaxIdleConnsPerHost: 8, ForceAttemptHTTP2: true, ExpectContinueTimeout: expectContinue}
	if socket == "" {
		t.Proxy = http.ProxyFromEnvironment
		t.DialContext = (&net.Dialer{}).DialContext
		return t
	}
	t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dialSocket(ctx, socket) }
	return t
}

// dialSocket connects to a Unix socket. If its path is too long for a socket's
// address, it connects through a descriptor of the socket's directory.
func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	if len(path) <= sockets.MaxPath {
		return d.DialContext(ctx, "unix", path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return d.DialContext(ctx, "unix", sockets.Address(dir, filepath.Base(path)))
}

// Listens reports whether a process accepts connections on a Unix socket.
func Listens(ctx context.Context, socket string) bool {
	conn, err := dialSocket(ctx, socket)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// noRedirect makes the client return a redirect as a reply. Following it could
// send the key to another server.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
