// Package daemon is the composition root of the server process: from a
// [Config] to listeners, keys, the core of the home and the service on them.
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
	"time"

	"golang.org/x/sync/errgroup"

	"sandbox/auth"
	"sandbox/core"
	"sandbox/core/local"
	"sandbox/httpd"
	"sandbox/spool"
)

// Streams is where a daemon says what is not for its clients.
type Streams struct {
	Say io.Writer    // lines for people: the ready line, the first key
	Log *slog.Logger // requests and failures
}

// Daemon is a server that listens.
type Daemon struct {
	settings
	Streams
	Address Address // of this start

	lock    *os.File
	runtime *core.Runtime
	keys    *auth.Store
	spool   *spool.Store
	// removals calls back when boxes were removed, by whichever process; nil
	// where nobody else can.
	removals func(context.Context, func()) error
	changes  func(context.Context, func()) error // the same for all that becomes of boxes
	logs     logEngine
	server   *httpd.Server
	tcp      net.Listener // nil without
	unix     *unixListener
}

// shutdownTime is how long requests in flight have after the end was asked for.
const shutdownTime = 10 * time.Second

// Run serves until ctx ends, and then closes in good order: streams are told,
// requests finished, boxes left running. Errors: Config, InvalidState (a
// daemon runs on the home), PortInUse, and those of [local.Open].
func Run(ctx context.Context, c Config, streams Streams) error {
	d, err := Open(ctx, c, streams)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(streams.Say, "sandbox: ready on %s\n", strings.Join(d.places(), " and "))
	return d.Serve(ctx)
}

// Open opens the home and listens, so that what is wrong shows at once.
func Open(ctx context.Context, c Config, streams Streams) (*Daemon, error) {
	s, err := c.check()
	if err != nil {
		return nil, err
	}
	host, err := local.Open(local.Config{Home: s.Home, Beside: s.Beside, Aliases: s.Aliases, Cached: true})
	if err != nil {
		return nil, err
	}
	d, err := start(ctx, s, host.Runtime, streams)
	if err == nil {
		d.removals, d.changes = host.Engine.Removals, host.Engine.Changes
	}
	return d, err
}

// start is Open with a runtime, which it closes when it fails.
func start(ctx context.Context, s settings, runtime *core.Runtime, streams Streams) (_ *Daemon, err error) {
	d := &Daemon{settings: s, Streams: streams, runtime: runtime}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close(context.WithoutCancel(ctx)))
		}
	}()
	if d.lock, err = lock(s.Home); err != nil {
		return nil, err
	}
	dir := filepath.Join(s.Home, "daemon")
	if d.keys, err = auth.Open(filepath.Join(dir, "keys")); err != nil {
		return nil, err
	}
	idempotency, err := httpd.OpenIdempotency(filepath.Join(dir, "creates"))
	if err != nil {
		return nil, err
	}
	if d.logs, err = s.openLogs(ctx, runtime, streams.Log); err != nil {
		return nil, err
	}
	d.spool = spool.Open(spool.Config{Dir: filepath.Join(s.Home, "spool"), Log: streams.Log, Begun: d.logs.follow()})
	d.sweep(ctx)
	if err := d.spool.Adopt(ctx, spooled{runtime}); err != nil {
		return nil, err
	}
	d.server, err = httpd.New(httpd.Config{
		Runtime: runtime, Keys: d.keys, Idempotency: idempotency, Spool: d.spool, Logs: d.logs.service, Ingest: d.logs.writer, Held: dir, Log: streams.Log,
		Environment: s.Environment, Prefix: s.Prefix, Hosted: s.Hosted,
		HostRoots: s.HostRoots, Closed: []string{s.Socket}, Publish: s.publish,
	})
	if err != nil {
		return nil, err
	}
	return d, d.listen(ctx)
}

// listen opens the listeners and tells the command line where they are.
func (d *Daemon) listen(ctx context.Context) (err error) {
	if d.unix, err = d.listenUnix(ctx); err != nil {
		return err
	}
	if d.Listen != NoListen {
		if d.tcp, err = d.listenTCP(ctx); err != nil {
			return err
		}
	}
	before, err := ReadAddress(d.Home)
	if err != nil {
		return err
	}
	d.Address = d.administrator(d.keys, before, d.address(d.tcp), d.Say)
	return addresses(d.Home).Put(addressKey, d.Address, true)
}

// places names the addresses for people.
func (d *Daemon) places() []string {
	places := []string{"unix://" + d.Socket}
	if d.tcp != nil {
		places = []string{d.Address.URL, places[0]}
	}
	return places
}

// Serve answers until ctx ends, and closes.
func (d *Daemon) Serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.server.Serve(d.unix, httpd.ByFile) })
	if d.tcp != nil {
		group.Go(func() error { return d.server.Serve(d.tcp, httpd.ByKey) })
	}
	if d.removals != nil {
		group.Go(func() error { return d.removals(ctx, func() { d.sweep(ctx) }) })
	}
	if d.changes != nil && d.logs.boxes != nil {
		d.recordBoxes(ctx)
		group.Go(func() error { return d.changes(ctx, func() { d.recordBoxes(ctx) }) })
	}
	<-ctx.Done()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	return errors.Join(d.Close(closing), group.Wait())
}

// Close ends the service; ctx bounds the wait for requests in flight. It is
// for a Daemon that is not served, too.
func (d *Daemon) Close(ctx context.Context) error {
	var errs []error
	if d.server != nil {
		errs = append(errs, d.server.Close(ctx))
	}
	// Not those that Serve was given alone: it may never have been called.
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
