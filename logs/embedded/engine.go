// Package embedded runs the embedded log engine: a child process that loads
// libchdb, the SQL engine of ClickHouse, and answers ClickHouse's HTTP
// interface on a Unix socket. It is started again whenever it dies.
package embedded

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sandbox/core/fault"
	"sandbox/core/sockets"
)

// Options says where the engine is and what it may use.
type Options struct {
	Dir       string        // of the engine's data, socket and lock; made when missing
	HelperDir string        // directory of sandbox-logs; "" searches for it
	Beside    string        // directory of the program in use; "" for none
	Library   string        // path of libchdb.so; "" looks in lib/ beside sandbox-logs
	TTL       time.Duration // how long a row is kept, at least a second; 0 is DefaultTTL
	Memory    int64         // bytes that all statements together may use; 0 is DefaultMemory
	Logger    *slog.Logger  // receives starts, ends and what the child prints; nil logs nothing
}

// Defaults of the options.
const (
	DefaultTTL          = 7 * 24 * time.Hour
	DefaultMemory int64 = 4 << 30
)

// maxTTL keeps the end of a row's lifetime within the range of the engine's
// DateTime, which ends in 2106. A row whose end is beyond it would be removed
// at once.
const maxTTL = 50 * 365 * 24 * time.Hour

// Engine runs the engine of one directory. Its methods may be called from any
// goroutine.
type Engine struct {
	options    Options
	child, lib string
	dir        *os.File // the directory: sockets are reached through this descriptor, because a path may be too long for a socket's address

	stop    context.CancelFunc
	stopped chan struct{}
	damaged chan struct{} // holds one word that a file is damaged

	mended time.Time // when the child was last ended for damage; used by keep alone

	mu      sync.Mutex
	why     error         // why there is no engine now; nil when there is one
	changed chan struct{} // closed at the next change of why
}

// Start starts the engine and keeps it running until Close. ctx bounds only
// this call. It does not wait until the engine answers: see Wait. Errors:
// Engine and Unavailable, when a part of the engine is missing; Storage.
func Start(ctx context.Context, o Options) (*Engine, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.Of(err)
	}
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	if o.Memory == 0 {
		o.Memory = DefaultMemory
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.TTL < time.Second || o.TTL > maxTTL || o.Memory < 0 {
		return nil, fault.New(fault.Config, "log engine: rows are kept %v and the memory is %d: want 1 second to 50 years, and a memory size of at least 0", o.TTL, o.Memory)
	}
	e := &Engine{options: o, stopped: make(chan struct{}), damaged: make(chan struct{}, 1), changed: make(chan struct{}), why: errStarting}
	var err error
	if e.child, e.lib, err = o.find(); err != nil {
		return nil, err
	}
	if e.dir, err = openDir(o.Dir); err != nil {
		return nil, err
	}
	keeping, stop := context.WithCancel(context.Background())
	e.stop = stop
	go e.keep(keeping)
	return e, nil
}

var errStarting = fault.New(fault.Unavailable, "the log engine is starting")

// openDir opens the engine's directory. It makes the directory if it is
// missing.
func openDir(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Join(path, "data"), 0o700); err != nil {
		return nil, fault.Disk(err, "make the directory of the log engine")
	}
	dir, err := sockets.OpenDir(path)
	return dir, fault.Disk(err, "open the directory of the log engine")
}

// Close ends the engine. Acknowledged rows are there at the next start.
// Statements that are running fail.
func (e *Engine) Close() error {
	e.stop()
	<-e.stopped
	return e.dir.Close()
}

// Mend starts the engine again, since one that starts sets damaged files aside, and
// takes what a merge was made of instead, as long as that is there (8 minutes). It
// does so once in a while at most, and does not wait.
func (e *Engine) Mend() {
	select {
	case e.damaged <- struct{}{}:
	default: // it was said already
	}
}

// Err returns nil while the engine answers, and otherwise the reason why it
// does not. Errors: Unavailable.
func (e *Engine) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.why
}

// Wait waits until the engine answers. Errors: Unavailable, with the reason
// that was known when ctx ended.
func (e *Engine) Wait(ctx context.Context) error {
	for {
		e.mu.Lock()
		why, changed := e.why, e.changed
		e.mu.Unlock()
		if why == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return why
		case <-e.stopped:
			return why
		}
	}
}

// set stores why there is no engine, or nil when there is one.
func (e *Engine) set(why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.why = why
	close(e.changed)
	e.changed = make(chan struct{})
}

// Dial connects to the engine's HTTP interface. Errors: Unavailable.
func (e *Engine) Dial(ctx context.Context) (net.Conn, error) {
	if err := e.Err(); err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", sockets.Address(e.dir, socketName))
	return conn, fault.Wrap(fault.Unavailable, err, "reach the log engine")
}
