package ingest

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"sync"

	"sandbox/core/fault"
	"sandbox/logs/clickhouse"
)

// Limits of what is held in memory.
const (
	// MaxBody bounds the size of a request in bytes, after decompression.
	MaxBody = 16 << 20
	// maxPending bounds the bytes of rows that wait for the engine. Further
	// requests are refused, and their senders are told to try again.
	maxPending = 2 * maxBlock
	// maxInsert bounds the bytes of rows in one insert.
	maxInsert = 32 << 20
	// inserts is how many inserts run at once. The engine reads each on one
	// thread.
	inserts = 2
)

// Writer writes rows to one engine. While an insert runs, the rows of other
// requests are gathered, and the next insert stores them together. So there are
// few inserts when there are many requests, and a single request does not wait.
// The methods of a Writer may be called from any goroutine.
type Writer struct {
	engine   *clickhouse.Client
	decoding chan struct{} // one place per processor
	ctx      context.Context
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	pending []waiting
	size    int // bytes of rows that wait or are being stored
	busy    int // inserts that run
	closed  bool
}

// waiting holds rows that are to be stored, and the channel on which their
// outcome is reported.
type waiting struct {
	batch
	done chan<- error
}

// NewWriter makes a writer. Close ends it.
func NewWriter(engine *clickhouse.Client) *Writer {
	w := &Writer{engine: engine, decoding: make(chan struct{}, runtime.GOMAXPROCS(0))}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// Close ends the inserts that run. No sender was told that their rows are
// stored.
func (w *Writer) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.stop()
	w.running.Wait()
}

// Export stores the records of an ExportLogsServiceRequest, and returns how
// many it can't store because they are wrong. When it returns without an error,
// the other records are on the engine's disk. They are stored even if ctx ends
// before. Errors: Malformed, TooLarge, ResourceExhausted (try again),
// Unavailable and Upstream (the engine's fault; try again), Canceled.
func (w *Writer) Export(ctx context.Context, e Encoding, body []byte) (refused int, err error) {
	b, refused, err := w.decode(ctx, e, body)
	if err != nil || b.rows == 0 && b.size == 0 {
		return refused, err
	}
	return refused, w.store(ctx, b)
}

// decode waits for one of the few places to decode in. Their number bounds the
// memory that decoding takes.
func (w *Writer) decode(ctx context.Context, e Encoding, body []byte) (*block, int, error) {
	select {
	case w.decoding <- struct{}{}:
		defer func() { <-w.decoding }()
	case <-ctx.Done():
		return nil, 0, fault.Of(ctx.Err())
	}
	logs, err := decode(e, body)
	if err != nil {
		return nil, 0, err
	}
	b := newBlock()
	refused := each(logs, b.add)
	return b, refused, nil
}

// Store stores rows. Errors: as Export.
func (w *Writer) Store(ctx context.Context, rows []Row) error {
	b := newBlock()
	for i := range rows {
		b.add(&rows[i])
	}
	return w.store(ctx, b)
}

func (w *Writer) store(ctx context.Context, b *block) error {
	schema, err := w.engine.Schema(ctx)
	if err != nil {
		return failed(err)
	}
	rows, err := b.batch(schema)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	if err := w.enqueue(waiting{rows, done}); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fault.Of(ctx.Err())
	}
}

// enqueue appends rows to those that wait, and starts an insert if another one
// may run.
func (w *Writer) enqueue(one waiting) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return fault.New(fault.Unavailable, "the server is closing")
	}
	if w.size > 0 && w.size+len(one.text) > maxPending {
		return fault.New(fault.ResourceExhausted, "too many records wait for the log engine: try again in a second")
	}
	w.size += len(one.text)
	w.pending = append(w.pending, one)
	if w.busy < inserts {
		w.busy++
		w.running.Go(w.work)
	}
	return nil
}

// work stores rows until none wait.
func (w *Writer) work() {
	for {
		group := w.next()
		if group == nil {
			return
		}
		err := w.insert(group)
		w.mu.Lock()
		for _, one := range group {
			w.size -= len(one.text)
			one.done <- err
		}
		w.mu.Unlock()
	}
}

// next returns rows that can be stored together, oldest first. It returns nil
// if none wait.
func (w *Writer) next() []waiting {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, size := 0, 0
	for n < len(w.pending) && w.pending[n].fits(w.pending[0].batch) && (n == 0 || size+len(w.pending[n].text) <= maxInsert) {
		size += len(w.pending[n].text)
		n++
	}
	if n == 0 {
		w.busy--
		return nil
	}
	group := w.pending[:n:n]
	w.pending = w.pending[n:]
	return group
}

func (w *Writer) insert(group []waiting) error {
	readers := make([]io.Reader, len(group))
	for i, one := range group {
		readers[i] = bytes.NewReader(one.text)
	}
	err := w.engine.Insert(w.ctx, clickhouse.Insertion{
		Columns: group[0].columns, Format: "Native", Body: io.MultiReader(readers...),
		// The table has a part for each day. Records of many days must not make
		// the insert fail, and with it the records that are stored together
		// with them.
		Settings: map[string]string{"throw_on_max_partitions_per_insert_block": "0"},
	})
	return failed(err)
}

// failed rewords a failure of the engine. None of them is the sender's fault.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.Unavailable, err, "the log engine refused the records")
}
