// Package boxlog writes what happens in boxes as rows of the log table: their
// output, each change of their state, and what becomes of their main commands. It reads
// output from the spool, or from where the shim keeps that of main commands, so that an
// engine that is slow or dead neither slows a command nor loses its output.
package boxlog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"sandbox/logs/clickhouse"
	"sandbox/logs/ingest"
	"sandbox/spool"
)

// Limits of what is held in memory and written.
const (
	// maxOutput is how many bytes of an exec's output become rows (contract,
	// section 9).
	maxOutput = 1 << 20
	// maxLine is the length at which a line is split into several rows. It is
	// split at the end of the piece of output in which it reaches this length,
	// so that no character is split.
	maxLine = 64 << 10
	// maxChunk is how many rows are stored together, and maxChunks how many
	// such chunks may wait. Who writes more has to wait.
	maxChunk, maxChunks = 256, 64
	// maxRows and maxText are how many rows, and how many bytes of text in them, are
	// enough for one insert: an insert that is too large is refused as a whole.
	maxRows, maxText = maxChunk * maxChunks, 16 << 20
	// maxWaiting is how many execs may wait to hand over rows, each at most
	// maxOutput of them. While the engine is dead for long, the output of further
	// execs is left out of the log table.
	maxWaiting = 128
	// maxEvents is how many rows about boxes wait beside them: nobody may have
	// to wait who looks at boxes, and a flood of output leaves none out.
	maxEvents = 1 << 14
	// linger is how long rows wait for others to be stored with. It is worth
	// waiting, because each insert makes a file of the engine's.
	linger = 200 * time.Millisecond
	// again is the pause before another try when the engine does not accept
	// rows.
	again = time.Second
)

// Config holds what a Recorder is made from.
type Config struct {
	Writer *ingest.Writer
	// Name returns the name of a box, or "".
	Name func(ctx context.Context, box string) string
	Log  *slog.Logger
	// Mains has what main commands print; nil for a host without. Engine is what Writer
	// writes to, and Positions the directory for how much of it is there.
	Mains     *spool.Store
	Engine    *clickhouse.Client
	Positions string
	// Late is how long after the end of who has sent them rows may still come into the
	// table: a server goes on with what it has got. 0 for an engine that ends, too.
	Late time.Duration
}

// Recorder writes rows. Its methods may be called from any goroutine.
type Recorder struct {
	Config
	chunks    chan []ingest.Row
	waiting   chan struct{}   // has one place for each exec that may wait to hand over rows
	removed   chan struct{}   // has one place for each removed box that may wait for the engine
	ctx       context.Context // of the goroutines that follow execs
	stop      context.CancelFunc
	following sync.WaitGroup
	stored    chan struct{}   // closed when the last rows were stored
	storing   context.Context // of what is being stored, which ends later than ctx
	giveUp    context.CancelFunc

	mu     sync.Mutex
	states map[string]state // of the boxes at the last call of Boxes; nil before the first
	events []ingest.Row     // about boxes; they wait to be stored with what is stored next
	closed bool
	// services follow the main commands of boxes.
	services map[string]*service
}

// New makes a recorder. Close ends it.
func New(c Config) *Recorder {
	r := &Recorder{Config: c, services: map[string]*service{}, chunks: make(chan []ingest.Row, maxChunks), waiting: make(chan struct{}, maxWaiting), removed: make(chan struct{}, maxRemoved), stored: make(chan struct{})}
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.storing, r.giveUp = context.WithCancel(context.Background())
	go r.keep(r.storing)
	return r
}

// Close stores what was read until now, as far as that is possible before ctx
// ends.
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

// push hands over rows of an exec to be stored. It waits while too many rows are
// waiting. It returns false if the recorder is closing, or if too many execs wait
// already: then it says so in the server's log.
func (r *Recorder) push(exec string, rows []ingest.Row) bool {
	if len(rows) == 0 {
		return true
	}
	select {
	case r.chunks <- rows:
		return true
	default:
	}
	select {
	case r.waiting <- struct{}{}:
		defer func() { <-r.waiting }()
	default:
		r.Log.Warn("output of an exec is left out of the log table: too many rows wait for the log engine", "exec_id", exec)
		return false
	}
	select {
	case r.chunks <- rows:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// keep stores chunks until the channel of chunks is closed.
func (r *Recorder) keep(ctx context.Context) {
	defer close(r.stored)
	for first := range r.chunks {
		if rows := append(r.gather(first), r.takeEvents()...); len(rows) > 0 && !r.store(ctx, rows) {
			r.Log.Warn("rows of boxes were not stored before the server ended", "rows", len(rows))
		}
	}
}

// takeEvents returns the rows about boxes that wait.
func (r *Recorder) takeEvents() []ingest.Row {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := r.events
	r.events = nil
	return rows
}

// gather adds to a chunk the rows that arrive soon after it.
func (r *Recorder) gather(rows []ingest.Row) []ingest.Row {
	timer := time.NewTimer(linger)
	defer timer.Stop()
	for size := text(rows); len(rows) < maxRows && size < maxText; {
		more, came := r.next(timer.C)
		if !came {
			break
		}
		rows, size = append(rows, more...), size+text(more)
	}
	return rows
}

// next waits for a chunk. It returns false if none comes until late. When the recorder is
// closing, it does not wait: what there is, is stored at once.
func (r *Recorder) next(late <-chan time.Time) (rows []ingest.Row, came bool) {
	select {
	case rows, came = <-r.chunks:
	case <-late:
	case <-r.ctx.Done():
		select {
		case rows, came = <-r.chunks:
		default:
		}
	}
	return rows, came
}

// text returns how many bytes of text rows have.
func text(rows []ingest.Row) (size int) {
	for i := range rows {
		size += len(rows[i].Body)
	}
	return size
}

// store stores rows. It tries again while the engine is unavailable. It returns
// false if ctx ended before.
func (r *Recorder) store(ctx context.Context, rows []ingest.Row) bool {
	for told := false; ; told = true {
		err := r.Writer.Store(ctx, rows)
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil:
			return false
		case !later(err):
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

func serviceName(box string) string { return "box-" + box }

// row returns a row about a box.
func row(box, name string, at time.Time) ingest.Row {
	attributes := []ingest.Pair{{Key: "box.id", Value: box}}
	if name != "" {
		attributes = append(attributes, ingest.Pair{Key: "box.name", Value: name})
	}
	return ingest.Row{
		Nanoseconds: at.UnixNano(), Service: serviceName(box),
		Resource: ingest.Resource{Attributes: attributes}, Scope: ingest.Scope{Name: "sandbox"},
	}
}
