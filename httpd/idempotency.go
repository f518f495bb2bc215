package httpd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"sandbox/core/fault"
	"sandbox/core/store"
)

const (
	// keepReply is how long a reply is kept (contract, section 2).
	keepReply = 24 * time.Hour
	// maxReplies bounds the replies that are kept. A flood of creates pushes
	// out the oldest: that is better than to refuse boxes for a day.
	maxReplies = 16384
)

// Idempotency keeps the replies of creates that had an Idempotency-Key, so that
// a client that sends one again gets the same box and not a second one. They
// survive a restart. Failures are not kept: they have made no box, and the next
// try may work. It is safe for concurrent use.
type Idempotency struct {
	records store.Dir[keptReply]

	mu      sync.Mutex
	order   []keptKey // oldest first
	running map[string]*attempt
}

// keptReply is the record of one create.
type keptReply struct {
	Key     string    `json:"key"`  // SHA-256 in hex: the client's own may hold anything
	Body    [32]byte  `json:"body"` // SHA-256
	Created created   `json:"created"`
	At      time.Time `json:"at"`
}

// created is a box that was made.
type created struct {
	ID       string `json:"id"`
	Document []byte `json:"document"` // the reply's body, JSON
}

// keptKey is the place of a record in the order of their ages.
type keptKey struct {
	key string
	at  time.Time
}

// attempt is a create that is under way.
type attempt struct {
	body [32]byte
	done chan struct{} // closed at its end
}

// OpenIdempotency opens the directory of records; it is made with the first
// record. Errors: Storage.
func OpenIdempotency(dir string) (*Idempotency, error) {
	i := &Idempotency{records: store.Dir[keptReply]{Path: dir}, running: map[string]*attempt{}}
	if err := i.records.Sweep(); err != nil {
		return nil, err
	}
	// A damaged record costs one create its reply, and nothing else.
	records, _, err := i.records.List()
	if err != nil {
		return nil, err
	}
	for _, rec := range records {
		i.order = append(i.order, keptKey{rec.Key, rec.At})
	}
	slices.SortFunc(i.order, func(a, b keptKey) int { return a.at.Compare(b.at) })
	return i, nil
}

// once runs create, or returns what it returned for the same key and body
// before. Of several calls at once only one runs, and the others wait for it.
// undo removes the box again when its reply can't be kept: without it the next
// try would make a second box. Errors: IdempotencyMismatch, Storage, and
// create's own.
func (i *Idempotency) once(ctx context.Context, key string, doc []byte, create func() (created, error), undo func(created)) (created, error) {
	if key == "" {
		return create()
	}
	sum := sha256.Sum256([]byte(key))
	key = hex.EncodeToString(sum[:])
	mine := &attempt{body: sha256.Sum256(doc), done: make(chan struct{})}
	if err := i.enter(ctx, key, mine); err != nil {
		return created{}, err
	}
	defer i.leave(key, mine)
	old, err := i.records.Get(key)
	switch {
	case err == nil && time.Since(old.At) < keepReply:
		if old.Body != mine.body {
			return created{}, errMismatch()
		}
		return old.Created, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return created{}, err
	}
	box, err := create()
	if err != nil {
		return created{}, err
	}
	if err := i.keep(keptReply{Key: key, Body: mine.body, Created: box, At: time.Now().UTC()}); err != nil {
		undo(box)
		return created{}, err
	}
	return box, nil
}

func errMismatch() error {
	return fault.New(fault.IdempotencyMismatch, "this Idempotency-Key was used with another body: take a new key for another box")
}

// enter waits until no other attempt with this key is under way, and registers
// mine. Errors: IdempotencyMismatch, and ctx's.
func (i *Idempotency) enter(ctx context.Context, key string, mine *attempt) error {
	for {
		i.mu.Lock()
		other := i.running[key]
		if other == nil {
			i.running[key] = mine
			i.mu.Unlock()
			return nil
		}
		i.mu.Unlock()
		if other.body != mine.body {
			return errMismatch()
		}
		select {
		case <-other.done:
		case <-ctx.Done():
			return fault.Of(ctx.Err())
		}
	}
}

func (i *Idempotency) leave(key string, mine *attempt) {
	i.mu.Lock()
	delete(i.running, key)
	i.mu.Unlock()
	close(mine.done)
}

// keep writes a record, and deletes those that are too old or too many.
func (i *Idempotency) keep(r keptReply) error {
	if err := i.records.Put(r.Key, r, true); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.order = slices.DeleteFunc(i.order, func(m keptKey) bool { return m.key == r.Key }) // an expired record of the same key
	i.order = append(i.order, keptKey{r.Key, r.At})
	for len(i.order) > maxReplies || time.Since(i.order[0].at) >= keepReply {
		if err := i.records.Delete(i.order[0].key); err != nil {
			return nil //nolint:nilerr // the reply is kept; the next call deletes the rest
		}
		i.order = i.order[1:]
	}
	return nil
}
