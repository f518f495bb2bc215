// Package daemon puts the server process together: from a [Config] it opens the
// home's boxes, keys, spool and logs, builds the HTTP service on them, listens,
// and closes all of it in good order.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sandbox/auth"
	"sandbox/console"
	"sandbox/core"
	"sandbox/core/code"
	"sandbox/core/local"
	"sandbox/daemon/address"
	"sandbox/daemon/systemd"
	"sandbox/httpd"
	"sandbox/httpd/share"
	"sandbox/mcp"
	"sandbox/metrics"
	"sandbox/spool"

	"sandbox/core/filelock"
)

// Streams are where a daemon writes what is not for its clients.
type Streams struct {
	Say io.Writer    // lines for the user: that it is ready, where the first key is
	Log *slog.Logger // requests and failures
	// Reload asks for the files that can change under a daemon to be read again:
	// its TLS certificate. nil for never.
	Reload <-chan os.Signal
	// Manager is told that the daemon is ready, reads settings again and ends; nil
	// for nobody.
	Manager *systemd.Manager
}

// Daemon is a server that listens. Its owner calls Serve or Close.
type Daemon struct {
	settings
	Streams
	Address address.Address // where this daemon listens

	lock    *filelock.File
	runtime *core.Runtime
	keys    *auth.Store
	spool   *spool.Store
	// changes calls back after boxes have changed, by this process or another; it is
	// nil where no other process can change boxes.
	changes func(ctx context.Context, changed func(removed bool)) error
	// watchSpace calls back when the home's disk has become low on space; it is
	// nil without a real engine.
	watchSpace func(ctx context.Context, low func(freeMiB uint64, largest string, err error))
	logs       logEngine
	flapping   flapping
	history    *metrics.History // nil if MetricsInterval is 0
	code       *code.Contexts   // of all who run code in boxes
	server     *httpd.Server
	e2b        *dialect     // nil if E2B is ""
	tcp        net.Listener // nil if Listen is NoListen
	unix       *unixListener
}

// shutdownTime bounds how long Serve waits for requests in flight when it ends.
const shutdownTime = 10 * time.Second

// Run serves until ctx ends. Then it tells streams to end, waits for requests in
// flight, and leaves boxes running. Errors: Config, InvalidState (the home has a
// daemon already), PortInUse, and those of [local.Open].
func Run(ctx context.Context, c Config, streams Streams) error {
	d, err := Open(ctx, c, streams)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(streams.Say, "sandbox: %s\n", d.status())
	d.tell(d.Manager.Ready(d.status()))
	return d.Serve(ctx)
}

// Open opens the home and its listeners. A wrong setting fails here, before
// anything is served. Errors: those of [Run].
func Open(ctx context.Context, c Config, streams Streams) (*Daemon, error) {
	s, err := c.check()
	if err != nil {
		return nil, err
	}
	s.Cluster.HostRoots = s.HostRoots
	host, err := local.Open(local.Config{Home: s.Home, Beside: s.Beside, Aliases: s.Aliases, Cached: true, Engine: s.Engine, Cluster: s.Cluster})
	if err != nil {
		return nil, err
	}
	if host.Engine != nil {
		host.Engine.Guard() // first, since the times of boxes go on; also for those of other programs, which may have ended
	}
	d, err := start(ctx, s, host, streams)
	if err == nil {
		d.changes = host.Changes
	}
	if err == nil && host.Engine != nil {
		d.watchSpace = host.Engine.WatchSpace
	}
	return d, err
}

// start is Open with a home, which belongs to the Daemon from here on: start closes
// it when it fails.
func start(ctx context.Context, s settings, host *local.Host, streams Streams) (_ *Daemon, err error) {
	runtime := host.Runtime
	d := &Daemon{settings: s, Streams: streams, runtime: runtime, code: code.New(), flapping: flapping{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close(context.WithoutCancel(ctx)))
		}
	}()
	if d.lock, err = lock(ctx, s.Home, lockTimeout); err != nil {
		return nil, err
	}
	dir := filepath.Join(s.Home, "daemon")
	if d.keys, err = openKeys(host, dir, d.Log); err != nil {
		return nil, err
	}
	idempotency, err := httpd.OpenIdempotency(filepath.Join(dir, "creates"))
	if err != nil {
		return nil, err
	}
	if d.logs, err = s.openLogs(ctx, host, streams.Log); err != nil {
		return nil, err
	}
	d.history = s.openHistory(d.logs, runtime, streams.Log)
	d.spool = spool.Open(spool.Config{Dir: filepath.Join(s.Home, "spool"), Log: streams.Log, Begun: d.logs.follow()})
	d.sweep(ctx)
	if err := d.spool.Adopt(ctx, spooled{runtime, time.Now().Add(unseen)}); err != nil {
		return nil, err
	}
	sessions, err := s.openConsole(dir, streams.Log)
	if err != nil {
		return nil, err
	}
	shares, err := share.Open(dir, streams.Log)
	if err != nil {
		return nil, err
	}
	d.server, err = httpd.New(httpd.Config{
		Shares: shares, PortDomain: s.PortDomain,
		Console: sessions, Origin: d.origin,
		Tools:   &mcp.Config{Boxes: newToolBoxes(host, d.logs), Limits: s.MCP.limits()},
		Runtime: runtime, Code: d.code, Keys: d.keys, Idempotency: idempotency, Spool: d.spool, Shared: host.Shared != nil, Mains: host.Mains, Images: host.Images, Logs: d.logs.service, History: d.history, Ingest: d.logs.writer, Lines: d.logs.lines(), Held: dir, Log: streams.Log,
		Environment: s.Environment, Prefix: s.Prefix, Hosted: s.Hosted,
		HostRoots: s.HostRoots, Closed: []string{s.Socket}, Publish: s.published(host),
	})
	if err != nil {
		return nil, err
	}
	if err := d.listen(ctx); err != nil {
		return nil, err
	}
	d.e2b, err = d.openDialect(ctx, host)
	return d, err
}

// listen opens the listeners, and writes their addresses to the home, where the
// command line looks for them.
func (d *Daemon) listen(ctx context.Context) (err error) {
	if d.unix, err = d.listenUnix(ctx); err != nil {
		return err
	}
	switch {
	case d.Inherited.TCP != nil:
		d.tcp = d.dress(d.Inherited.TCP)
	case d.Listen != NoListen:
		if d.tcp, err = d.listenTCP(ctx, "--listen", d.Listen); err != nil {
			return err
		}
	}
	before, err := address.Read(d.Home)
	if err != nil {
		return err
	}
	d.Address = d.administrator(ctx, d.keys, before, d.address(d.tcp), d.Say)
	return address.Write(d.Home, d.Address)
}

// openKeys opens the keys of the home, or those that all servers on its boxes share.
func openKeys(host *local.Host, dir string, log *slog.Logger) (*auth.Store, error) {
	if host.Shared != nil {
		return auth.OpenShared(host.Shared("sandbox-keys"), log)
	}
	return auth.Open(filepath.Join(dir, "keys"), log)
}

// openConsole opens the sessions of the web console, if there shall be one. Errors:
// Storage.
func (s settings) openConsole(dir string, log *slog.Logger) (*console.Sessions, error) {
	if s.NoConsole {
		return nil, nil
	}
	return console.Open(console.Config{Dir: dir, Log: log})
}

// origin returns where a browser on this host finds the daemon, or "" if it listens
// on its Unix socket alone.
func (d *Daemon) origin() string {
	if d.tcp == nil {
		return ""
	}
	return strings.TrimSuffix(d.Address.URL, "/api")
}

// places returns the addresses for the user to read.
func (d *Daemon) places() []string {
	places := []string{"unix://" + d.Socket}
	if d.tcp != nil {
		places = []string{d.Address.URL, places[0]}
	}
	if d.e2b != nil {
		places = append(places, d.e2b.url()+" (E2B)")
	}
	return places
}

// status says in a line that the daemon answers, and where.
func (d *Daemon) status() string { return "ready on " + strings.Join(d.places(), " and ") }

// tell logs that the service manager was not told something. The daemon goes on: if it
// matters to the manager, that one acts.
func (d *Daemon) tell(err error) {
	if err != nil {
		d.Log.Error("the service manager does not hear", "error", err)
	}
}

// Serve answers requests until ctx ends, and then closes the Daemon.
func (d *Daemon) Serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.server.Serve(d.unix, httpd.ByFile) })
	if d.tcp != nil {
		group.Go(func() error { return d.server.Serve(d.tcp, httpd.ByKey) })
	}
	if d.e2b != nil {
		group.Go(d.e2b.serve)
	}
	if d.changes != nil {
		group.Go(func() error { return d.changes(ctx, func(removed bool) { d.follow(ctx, removed) }) })
	}
	if d.watchSpace != nil {
		group.Go(func() error { d.watchSpace(ctx, d.lowSpace); return nil })
	}
	d.untilEnd(ctx)
	d.tell(d.Manager.Stopping("waits for requests in flight; boxes keep running"))
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	return errors.Join(d.Close(closing), group.Wait())
}

// untilEnd reads the certificate again whenever that is asked for, until ctx ends.
func (d *Daemon) untilEnd(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.Reload:
			d.tell(d.Manager.Reloading())
			d.reload()
			d.tell(d.Manager.Ready(d.status()))
		}
	}
}

// reload reads the certificate again.
func (d *Daemon) reload() {
	if d.tls == nil {
		d.Log.Info("SIGHUP reloads only the TLS certificate, and none is set: other settings need a restart, during which boxes keep running")
		return
	}
	if err := d.tls.read(); err != nil {
		d.Log.Error("the TLS certificate can't be read again: the one in use stays", "error", err)
		return
	}
	d.Log.Info("the TLS certificate was read again", "file", d.TLSCert)
}

// Close ends the service and closes all that Open opened; ctx bounds the wait for
// requests in flight. What is to be stored has times of its own. A Daemon that was never
// served must be closed, too.
func (d *Daemon) Close(ctx context.Context) error {
	errs := []error{d.closeServers(ctx)}
	// The server closes only listeners that Serve has passed to it, and Serve may
	// never have been called.
	if d.unix != nil {
		errs = append(errs, d.unix.Close())
	}
	if d.tcp != nil {
		if err := d.tcp.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if d.spool != nil {
		d.spool.Close()
	}
	d.closeHistory(ctx)
	errs = append(errs, d.logs.Close(ctx))
	if d.keys != nil {
		errs = append(errs, d.keys.Close())
	}
	errs = append(errs, d.runtime.Close(ctx))
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	return errors.Join(errs...)
}

// closeServers closes both servers at the same time: while one waits for its requests in
// flight, the other tells its streams to end.
func (d *Daemon) closeServers(ctx context.Context) error {
	var both sync.WaitGroup
	var errs [2]error
	if d.e2b != nil {
		both.Go(func() { errs[0] = d.e2b.close(ctx) })
	}
	if d.server != nil {
		both.Go(func() { errs[1] = d.server.Close(ctx) })
	}
	both.Wait()
	return errors.Join(errs[:]...)
}

// closeHistory ends the measuring. The last samples have a time of their own, since
// requests in flight may have taken all of ctx.
func (d *Daemon) closeHistory(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastRows)
	defer cancel()
	d.history.Close(ctx)
}
