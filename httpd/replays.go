package httpd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"sandbox/core/fault"
	"sandbox/core/store"
)

const (
	// replayFor is how long a reply is remembered (contract, section 2).
	replayFor = 24 * time.Hour
	// maxReplays bounds the records. A flood of creates costs the oldest
	// replies their place: better than to refuse boxes for a day.
	maxReplays = 16384
	maxKeyLen  = 255
)

// Replays remembers what creates with an Idempotency-Key have answered, over
// restarts too. Failures are not remembered: they have made nothing, and the
// next try may work. It is safe for concurrent use.
type Replays struct {
	records store.Dir[replay]

	mu      sync.Mutex
	order   []made // oldest first
	running map[string]*attempt
}

// replay is the reply of one create.
type replay struct {
	Key     string    `json:"key"`  // SHA-256 in hex: the client's may hold anything
	Body    [32]byte  `json:"body"` // SHA-256
	Created created   `json:"created"`
	At      time.Time `json:"at"`
}

// created is a box that was made.
type created struct {
	ID       string `json:"id"`
	Document []byte `json:"document"` // JSON
}

type made struct {
	key string
	at  time.Time
}

// attempt is a create that is under way.
type attempt struct {
	body [32]byte
	done chan struct{}
}

// OpenReplays reads what a directory remembers. Errors: Storage.
func OpenReplays(dir string) (*Replays, error) {
	p := &Replays{records: store.Dir[replay]{Path: dir}, running: map[string]*attempt{}}
	if err := p.records.Sweep(); err != nil {
		return nil, err
	}
	// A damaged record is a create that can't be replayed: nothing hangs on it.
	records, err := p.records.List()
	if err != nil && records == nil {
		return nil, err
	}
	for _, rec := range records {
		p.order = append(p.order, made{rec.Key, rec.At})
	}
	slices.SortFunc(p.order, func(a, b made) int { return a.at.Compare(b.at) })
	return p, nil
}

// once runs create, or gives what it gave for the same key and body before. Of
// several at once one runs; the others wait for it. undo takes back a create
// that can't be remembered. Errors: IdempotencyMismatch, and create's own.
func (p *Replays) once(ctx context.Context, key string, doc []byte, create func() (created, error), undo func(created)) (created, error) {
	if key == "" {
		return create()
	}
	sum := sha256.Sum256([]byte(key))
	key = hex.EncodeToString(sum[:])
	mine := &attempt{body: sha256.Sum256(doc), done: make(chan struct{})}
	if err := p.enter(ctx, key, mine); err != nil {
		return created{}, err
	}
	defer p.leave(key, mine)
	old, err := p.records.Get(key)
	switch {
	case err == nil && time.Since(old.At) < replayFor:
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
	if err := p.remember(replay{Key: key, Body: mine.body, Created: box, At: time.Now().UTC()}); err != nil {
		undo(box)
		return created{}, err
	}
	return box, nil
}

func errMismatch() error {
	return fault.New(fault.IdempotencyMismatch, "this Idempotency-Key was used with another body: take a new key for another box")
}

// enter waits until no other attempt with this key is under way.
func (p *Replays) enter(ctx context.Context, key string, mine *attempt) error {
	for {
		p.mu.Lock()
		other := p.running[key]
		if other == nil {
			p.running[key] = mine
			p.mu.Unlock()
			return nil
		}
		p.mu.Unlock()
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

func (p *Replays) leave(key string, mine *attempt) {
	p.mu.Lock()
	delete(p.running, key)
	p.mu.Unlock()
	close(mine.done)
}

// remember writes the record, and forgets what is too old or too much.
func (p *Replays) remember(r replay) error {
	if err := p.records.Put(r.Key, r, true); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.order = slices.DeleteFunc(p.order, func(m made) bool { return m.key == r.Key }) // one that had expired
	p.order = append(p.order, made{r.Key, r.At})
	for len(p.order) > maxReplays || time.Since(p.order[0].at) >= replayFor {
		if err := p.records.Delete(p.order[0].key); err != nil {
			return nil //nolint:nilerr // the create is remembered; the next one tries again
		}
		p.order = p.order[1:]
	}
	return nil
}

// idempotencyKey returns the key of a create, or "". Errors: InvalidArgument.
func idempotencyKey(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	invisible := func(r rune) bool { return r <= ' ' || r > '~' }
	if key := values[0]; len(values) > 1 || key == "" || len(key) > maxKeyLen || strings.ContainsFunc(key, invisible) {
		return "", invalid("Idempotency-Key", "value", "must be one header of 1 to 255 visible characters")
	}
	return values[0], nil
}
