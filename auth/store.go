package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sandbox/api"
	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/ids"
)

// maxKeys bounds the disk and memory that a key with the permission Keys can use up.
const maxKeys = 10_000

// Store holds the keys of a home, or those that the servers of a namespace share. It is
// safe for concurrent use.
type Store struct {
	keeper keeper
	lag    time.Duration // how far the last-used times that are kept may lag behind

	changing sync.Mutex // held while a caller has keys changed; taken before mu
	closed   bool

	mu     sync.RWMutex // every request takes it: never held while the keeper works
	byHash map[[32]byte]*entry
	byID   map[string]*entry
	flush  *time.Timer // the planned write of last-used times, or nil
}

// keeper keeps keys beyond this process. It calls set and drop of the Store for all that
// changes, in the order of the changes, those that it is asked for among them: before
// the call that asks for one returns.
type keeper interface {
	// create keeps a new key for good. Errors: ResourceExhausted when there are maxKeys.
	create(ctx context.Context, k Key) error
	// delete forgets a key for good. Errors: KeyNotFound.
	delete(ctx context.Context, id string) error
	// used keeps the last-used times of keys. A key that is gone stays gone.
	used(ctx context.Context, keys []Key) error
	close()
}

// entry is a live key. Nothing of it changes but lastUsed.
type entry struct {
	key       Key // as it is kept
	principal Principal
	lastUsed  *atomic.Int64 // Unix time in seconds; 0 for never
}

func newStore(lag time.Duration) *Store {
	return &Store{lag: lag, byHash: map[[32]byte]*entry{}, byID: map[string]*entry{}}
}

// set notes that a key is kept as k.
func (s *Store) set(k Key) {
	e := &entry{key: k, lastUsed: &atomic.Int64{}, principal: Principal{
		Sub: k.ID, Name: k.Name, Type: api.ServiceAccount,
		Permissions: k.Permissions, Environment: k.Environment, ExpiresAt: k.ExpiresAt,
	}}
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.byID[k.ID]; before != nil {
		e.lastUsed = before.lastUsed
		delete(s.byHash, before.key.Hash)
	}
	if k.LastUsedAt != nil && k.LastUsedAt.Unix() > e.lastUsed.Load() {
		e.lastUsed.Store(k.LastUsedAt.Unix())
	}
	s.byHash[k.Hash], s.byID[k.ID] = e, e
}

// drop notes that a key is gone: Verify refuses its secret from now on.
func (s *Store) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byID[id]; e != nil {
		delete(s.byID, id)
		delete(s.byHash, e.key.Hash)
	}
}

// Verify returns the principal that a secret belongs to, and notes that the key
// was used. Errors: Unauthenticated. Its message is the same for a key that is
// unknown, mistyped, deleted or expired, so that it tells an attacker nothing.
func (s *Store) Verify(secret string) (*Principal, error) {
	if !wellFormed(secret) {
		return nil, errRefused()
	}
	var buf [secretLen]byte
	copy(buf[:], secret)
	hash := sha256.Sum256(buf[:])
	s.mu.RLock()
	e := s.byHash[hash]
	s.mu.RUnlock()
	// How long the look-up takes depends on the digest, which tells nothing of
	// the secret. The comparison is there so that the check does not depend on
	// how maps compare keys.
	if e == nil || subtle.ConstantTimeCompare(e.key.Hash[:], hash[:]) != 1 {
		return nil, errRefused()
	}
	return s.live(e)
}

// Holder returns the principal of the key with this id, which somebody acts for who
// has shown the key before, and notes that the key was used. Errors: Unauthenticated
// (the key was deleted or has expired).
func (s *Store) Holder(id string) (*Principal, error) {
	s.mu.RLock()
	e := s.byID[id]
	s.mu.RUnlock()
	if e == nil {
		return nil, errRefused()
	}
	return s.live(e)
}

// live returns the principal of a key that has not expired, and notes its use.
func (s *Store) live(e *entry) (*Principal, error) {
	now := time.Now()
	if e.key.expired(now) {
		return nil, errRefused()
	}
	s.used(e, now.Unix())
	return &e.principal, nil
}

func errRefused() error {
	return fault.New(fault.Unauthenticated, "the API key is unknown, mistyped, deleted or expired")
}

func (k *Key) expired(now time.Time) bool { return k.ExpiresAt != nil && !now.Before(*k.ExpiresAt) }

// used notes that a key was used now, in Unix seconds, and plans the write.
func (s *Store) used(e *entry, now int64) {
	if e.lastUsed.Swap(now) == now {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flush == nil {
		s.flush = time.AfterFunc(s.lag, s.writeUsed)
	}
}

// writeUsed is called by the timer: it has the last-used times kept that changed.
func (s *Store) writeUsed() {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	s.flush = nil
	s.mu.Unlock()
	if !s.closed {
		_ = s.write() // the next write, or Close, tries again
	}
}

// writeTimeout bounds how long last-used times may take to be kept.
const writeTimeout = 10 * time.Second

// write has the last-used times kept that changed. The caller holds changing.
func (s *Store) write() error {
	var keys []Key
	s.mu.RLock()
	for _, e := range s.byID {
		if k := e.shown(); k.LastUsedAt != nil && (e.key.LastUsedAt == nil || k.LastUsedAt.After(*e.key.LastUsedAt)) {
			keys = append(keys, k)
		}
	}
	s.mu.RUnlock()
	if len(keys) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	return s.keeper.used(ctx, keys)
}

// shown returns the key with its last-used time.
func (e *entry) shown() Key {
	k := e.key
	if last := e.lastUsed.Load(); last != 0 {
		at := time.Unix(last, 0).UTC()
		k.LastUsedAt = &at
	}
	return k
}

// Create makes a key and returns it with its secret, which is stored nowhere and
// can't be had again. by is the principal that makes the key; it can grant only
// permissions that it has itself. Errors: InvalidArgument, PermissionDenied,
// ResourceExhausted, Storage; of shared keys those of [Shared].
func (s *Store) Create(ctx context.Context, by *Principal, r Request) (Key, string, error) {
	var wrong document.Problems
	if r.Check(&wrong); wrong.Err(fault.InvalidArgument) != nil {
		return Key{}, "", wrong.Err(fault.InvalidArgument)
	}
	for _, p := range r.Permissions {
		if !by.grants(p, r.Environment) {
			return Key{}, "", fault.New(fault.PermissionDenied, "a key can grant only permissions it has, and this key lacks %s in the environment %s", p, r.Environment)
		}
	}
	secret := newSecret()
	k := Key{
		ID: ids.Key.New(), Name: r.Name, Hash: sha256.Sum256([]byte(secret)), Mask: mask(secret),
		Permissions: slices.Compact(slices.Sorted(slices.Values(r.Permissions))), Environment: r.Environment,
		CreatedAt: time.Now().UTC(), ExpiresAt: r.ExpiresAt,
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := s.keeper.create(ctx, k); err != nil {
		return Key{}, "", err
	}
	return k, secret, nil
}

func errTooMany() error {
	return fault.New(fault.ResourceExhausted, "there are %d keys, which is the most: delete some of them", maxKeys)
}

// List returns all keys, newest first.
func (s *Store) List() []Key {
	s.mu.RLock()
	defer s.mu.RUnlock()
	keys := make([]Key, 0, len(s.byID))
	for _, e := range s.byID {
		keys = append(keys, e.shown())
	}
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	return keys
}

// Delete deletes a key: Verify refuses its secret from now on. Errors:
// KeyNotFound, Storage; of shared keys those of [Shared].
func (s *Store) Delete(ctx context.Context, id string) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	return s.keeper.delete(ctx, id)
}

func errNoKey(id string) error { return fault.New(fault.KeyNotFound, "no key %q", id) }

// Close has the last-used times kept that are not yet. Errors: Storage; of shared keys
// those of [Shared].
func (s *Store) Close() error {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	if s.flush != nil {
		s.flush.Stop()
	}
	s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	defer s.keeper.close()
	return s.write()
}
