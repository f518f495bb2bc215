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
	"sandbox/core/ids"
	"sandbox/core/store"
)

const (
	// keepReply is how long a reply is kept (contract, section 2).
	keepReply = 24 * time.Hour
	// maxReplies bounds the replies that are kept. A flood of creates pushes
	// out the oldest: that is better than to refuse boxes for a day.
	maxReplies = 16384
)

// Idempotency has one box made for one Idempotency-Key, so that a client that
// sends a create again gets the same box and not a second one, also when the
// server was killed meanwhile. The key and the id that the box will have are
// written to disk before the box is made, and the reply afterwards. A try that
// finds the reply repeats it; one that finds only the id asks for the box with
// that id, which the engine makes only if there is none. Failures are not kept:
// they have made no box, and the next try may work. It is safe for concurrent
// use.
type Idempotency struct {
	records store.Dir[keptCreate]

	mu      sync.Mutex
	order   []keptKey // oldest first
	running map[string]*attempt
}

// keptCreate is the record of one create.
type keptCreate struct {
	Key     string    `json:"key"`  // SHA-256 in hex: the client's own may hold anything
	Body    [32]byte  `json:"body"` // SHA-256
	Created created   `json:"created"`
	At      time.Time `json:"at"`
}

// created is a box that was made, or that is to be made.
type created struct {
	ID       string `json:"id"`
	Document []byte `json:"document"` // the reply's body, JSON; empty until the box was made
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
	i := &Idempotency{records: store.Dir[keptCreate]{Path: dir}, running: map[string]*attempt{}}
	if err := i.records.Sweep(); err != nil {
		return nil, err
	}
	// A damaged record concerns the creates with its key, and no others.
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

// once makes a box with create, or returns what it returned for the same key and
// body before. Of several calls at once only one makes it, and the others wait
// for that one. create returns the box with an id, and makes it if there is
// none; exists tells whether there may be one. Errors: IdempotencyMismatch,
// Storage, and create's own.
func (i *Idempotency) once(ctx context.Context, key string, doc []byte, create func(id string) (created, error), exists func(id string) bool) (created, error) {
	if key == "" {
		return create(ids.Box.New())
	}
	sum := sha256.Sum256([]byte(key))
	key = hex.EncodeToString(sum[:])
	mine := &attempt{body: sha256.Sum256(doc), done: make(chan struct{})}
	if err := i.enter(ctx, key, mine); err != nil {
		return created{}, err
	}
	defer i.leave(key, mine)
	kept, err := i.begin(key, mine.body)
	if err != nil || kept.Created.Document != nil {
		return kept.Created, err
	}
	box, err := create(kept.Created.ID)
	if err == nil {
		// If this fails, the record is left without the reply and still leads to the box.
		_ = i.keep(keptCreate{Key: key, Body: mine.body, Created: box, At: time.Now().UTC()})
		return box, nil
	}
	if !exists(kept.Created.ID) {
		err = errors.Join(err, i.drop(key))
	}
	return created{}, err
}

// begin returns the record of a key. It writes one with a new id if there is
// none, or if the one that is there is too old. Errors: IdempotencyMismatch,
// Storage.
func (i *Idempotency) begin(key string, body [32]byte) (keptCreate, error) {
	old, err := i.records.Get(key)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return keptCreate{}, err
	case err == nil && time.Since(old.At) < keepReply && old.Body != body:
		return keptCreate{}, errMismatch()
	case err == nil && time.Since(old.At) < keepReply:
		return old, nil
	}
	kept := keptCreate{Key: key, Body: body, Created: created{ID: ids.Box.New()}, At: time.Now().UTC()}
	return kept, i.keep(kept)
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
func (i *Idempotency) keep(r keptCreate) error {
	if err := i.records.Put(r.Key, r, true); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.forget(r.Key) // an expired record of the same key, or the one without the reply
	i.order = append(i.order, keptKey{r.Key, r.At})
	for len(i.order) > maxReplies || time.Since(i.order[0].at) >= keepReply {
		if err := i.records.Delete(i.order[0].key); err != nil {
			return nil //nolint:nilerr // the create is kept; the next call deletes the rest
		}
		i.order = i.order[1:]
	}
	return nil
}

// drop deletes the record of a create that has made no box.
func (i *Idempotency) drop(key string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.forget(key)
	return i.records.Delete(key)
}

// forget takes a key out of the order. i.mu is held.
func (i *Idempotency) forget(key string) {
	i.order = slices.DeleteFunc(i.order, func(k keptKey) bool { return k.key == key })
}
