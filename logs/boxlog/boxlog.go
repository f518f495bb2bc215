// Package boxlog writes what happens in boxes as rows of the log table: their
// output, and what becomes of them. It reads output from the spool, so that an
// engine that is slow or dead neither slows a command nor loses its output.
package boxlog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"sandbox/core/fault"
	"sandbox/logs/ingest"
)

// Limits of what is held in memory and written.
const (
	// maxOutput is how much of an exec's output becomes rows (contract,
	// section 9).
	maxOutput = 1 << 20
	// maxLine is where a line is cut into several rows: at the end of the
	// piece of output in which it gets so long, which splits no character.
	maxLine = 64 << 10
	// maxChunk is how many rows wait together, and maxChunks how many of them:
	// whoever has more waits.
	maxChunk, maxChunks = 256, 64
	// linger is how long rows wait for others to be stored with: each insert
	// is a file of the engine's.
	linger = 200 * time.Millisecond
	// again is the time until another try when the engine does not take rows.
	again = time.Second
)

// Config is what a Recorder is made of.
type Config struct {
	Writer *ingest.Writer
	// Name gives the name of a box, or "".
	Name func(ctx context.Context, box string) string
	Log  *slog.Logger
}

// Recorder writes rows. Its methods may be called from any goroutine.
type Recorder struct {
	Config
	chunks    chan []ingest.Row
	ctx       context.Context // of those who follow execs
	stop      context.CancelFunc
	following sync.WaitGroup
	stored    chan struct{} // closed when nothing is stored any more
	giveUp    context.CancelFunc

	mu     sync.Mutex
	states map[string]state // of boxes, when they were last looked at; nil before
	closed bool
}

// New makes a recorder. Close ends it.
func New(c Config) *Recorder {
	r := &Recorder{Config: c, chunks: make(chan []ingest.Row, maxChunks), stored: make(chan struct{})}
	r.ctx, r.stop = context.WithCancel(context.Background())
	storing, giveUp := context.WithCancel(context.Background())
	r.giveUp = giveUp
	go r.keep(storing)
	return r
}

// Close stores what was read until now, as far as it can be done before ctx ends.
func (r *Recorder) Close(ctx context.Context) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	defer context.AfterFunc(ctx, r.giveUp)()
	r.following.Wait()
	close(r.chunks)
	<-r.stored
	r.giveUp()
}

// push hands rows over to be stored. It waits while too many do; false: the
// recorder is closing.
func (r *Recorder) push(rows []ingest.Row) bool {
	if len(rows) == 0 {
		return true
	}
	select {
	case r.chunks <- rows:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// keep stores chunks until there will be none.
func (r *Recorder) keep(ctx context.Context) {
	defer close(r.stored)
	for first := range r.chunks {
		if rows := r.gather(first); !r.store(ctx, rows) {
			r.Log.Warn("rows of boxes were not stored before the end", "rows", len(rows))
		}
	}
}

// gather adds to a chunk those that come soon behind it.
func (r *Recorder) gather(rows []ingest.Row) []ingest.Row {
	timer := time.NewTimer(linger)
	defer timer.Stop()
	for len(rows) < maxChunk*maxChunks {
		select {
		case more, open := <-r.chunks:
			if !open {
				return rows
			}
			rows = append(rows, more...)
		case <-timer.C:
			return rows
		case <-r.ctx.Done(): // the last ones need not wait
			select {
			case more, open := <-r.chunks:
				if !open {
					return rows
				}
				rows = append(rows, more...)
			default:
				return rows
			}
		}
	}
	return rows
}

// store stores rows, trying as long as the engine is there no more; false: ctx
// has ended before.
func (r *Recorder) store(ctx context.Context, rows []ingest.Row) bool {
	for told := false; ; told = true {
		err := r.Writer.Store(ctx, rows)
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil:
			return false
		case !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.ResourceExhausted):
			r.Log.Error("rows of boxes can't be stored", "rows", len(rows), "error", err)
			return true
		case !told:
			r.Log.Warn("rows of boxes wait for the log engine", "error", err)
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return false
		}
	}
}

// row is a row about a box.
func row(box, name string, at time.Time) ingest.Row {
	attributes := []ingest.Pair{{Key: "box.id", Value: box}}
	if name != "" {
		attributes = append(attributes, ingest.Pair{Key: "box.name", Value: name})
	}
	return ingest.Row{
		Nanoseconds: at.UnixNano(), Service: "box-" + box,
		Resource: ingest.Resource{Attributes: attributes}, Scope: ingest.Scope{Name: "sandbox"},
	}
}
