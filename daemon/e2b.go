package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"net"
	"path/filepath"

	"sandbox/core/local"
	"sandbox/core/store"
	"sandbox/httpd/e2b"
)

// dialect is the server that answers E2B's SDKs, with its listener.
type dialect struct {
	server *e2b.Server
	l      net.Listener
	scheme string
}

// openDialect opens the listener for E2B's SDKs, if there shall be one. Errors:
// PortInUse, Config, Storage.
func (d *Daemon) openDialect(ctx context.Context, host *local.Host) (*dialect, error) {
	if d.E2B == "" && d.Inherited.E2B == nil {
		return nil, nil
	}
	secret, err := e2bSecret(filepath.Join(d.Home, "daemon"))
	if err != nil {
		return nil, err
	}
	l, err := d.listenE2B(ctx)
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String()) // it is the address of a listener
	server := e2b.New(e2b.Config{
		Runtime: d.runtime, Keys: d.keys, Spool: d.spool, Mains: host.Mains, Code: d.code, History: d.history, Log: d.Log,
		Secret: secret, Domain: "localhost:" + port, PortDomain: d.PortDomain, Aliases: host.Images.Aliases,
	})
	scheme := "http://"
	if d.tls != nil {
		scheme = "https://"
	}
	return &dialect{server, l, scheme}, nil
}

func (d *Daemon) listenE2B(ctx context.Context) (net.Listener, error) {
	if l := d.Inherited.E2B; l != nil {
		return d.dress(l), nil
	}
	return d.listenTCP(ctx, "--e2b", d.E2B)
}

// url returns where SDKs find the server.
func (d *dialect) url() string { return d.scheme + reachable(d.l.Addr().String()) }

func (d *dialect) serve() error { return d.server.Serve(d.l) }

// close ends the server and its listener, also if it was never served.
func (d *dialect) close(ctx context.Context) error {
	err := d.server.Close(ctx)
	if closed := d.l.Close(); !errors.Is(closed, net.ErrClosed) {
		err = errors.Join(err, closed)
	}
	return err
}

// e2bSecret returns what the tokens of boxes are made with, and makes it for a home
// that never had one. Errors: Storage.
func e2bSecret(dir string) ([]byte, error) {
	const key, length = "e2b", 32
	kept := store.Dir[[]byte]{Path: dir}
	secret, err := kept.Get(key)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	secret = make([]byte, length)
	_, _ = rand.Read(secret) // never fails
	return secret, kept.Put(key, secret, true)
}
