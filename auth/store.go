package auth

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sandbox/api"
	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/store"
)

const (
	// maxKeys bounds the disk and memory that a key with the permission Keys
	// can use up.
	maxKeys = 10_000
	// writeAfter is how far the last-used times on disk may lag behind. To
	// write one for each request would cost more than the request.
	writeAfter = 10 * time.Second
)

// Store holds the keys of a home. It is safe for concurrent use. Only one process
// at a time may have a directory open: the daemon's lock of the home ensures it.
type Store struct {
	records store.Dir[Key]

	disk   sync.Mutex // held while records change; taken before mu
	closed bool

	mu     sync.RWMutex // every request takes it: never held while writing to disk
	byHash map[[32]byte]*entry
	byID   map[string]*entry
	flush  *time.Timer // the planned write of last-used times, or nil
}

// entry is a live key.
type entry struct {
	key       Key // as on disk, except for LastUsedAt
	principal Principal
	lastUsed  atomic.Int64 // Unix time in seconds; 0 for never
	written   int64        // lastUsed as on disk; guarded by Store.disk
}

// Open reads the keys of a directory, which is made with the first key. A record
// that is damaged is set aside, and the log names it: its key is refused from
// now on, and all others work. log may be nil. Errors: Storage.
func Open(dir string, log *slog.Logger) (*Store, error) {
	s := &Store{
		records: store.Dir[Key]{Path: dir},
		byHash:  map[[32]byte]*entry{}, byID: map[string]*entry{},
	}
	if err := s.records.Sweep(); err != nil {
		return nil, err
	}
	keys, damaged, err := s.records.List()
	if err != nil {
		return nil, err
	}
	for _, d := range damaged {
		file, err := s.records.SetAside(d.Key)
		if log != nil {
			log.Error("the damaged record of a key was set aside, and the key is refused", "key_id", d.Key, "file", file, "damage", d.Err, "error", err)
		}
	}
	for _, k := range keys {
		s.add(k)
	}
	return s, nil
}

func (s *Store) add(k Key) {
	e := &entry{key: k, principal: Principal{
		Sub: k.ID, Name: k.Name, Type: api.ServiceAccount,
		Permissions: k.Permissions, Environment: k.Environment, ExpiresAt: k.ExpiresAt,
	}}
	if k.LastUsedAt != nil {
		e.written = k.LastUsedAt.Unix()
		e.lastUsed.Store(e.written)
	}
	s.byHash[k.Hash], s.byID[k.ID] = e, e
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
		s.flush = time.AfterFunc(writeAfter, s.writeUsed)
	}
}

// writeUsed is called by the timer: it writes the last-used times that changed.
func (s *Store) writeUsed() {
	s.disk.Lock()
	defer s.disk.Unlock()
	s.mu.Lock()
	s.flush = nil
	s.mu.Unlock()
	if !s.closed {
		_ = s.write() // the next write, or Close, tries again
	}
}

// write writes the last-used times that changed. It does not sync: a power cut
// may lose them. The caller holds disk.
func (s *Store) write() error {
	s.mu.RLock()
	entries := slices.Collect(maps.Values(s.byID))
	s.mu.RUnlock()
	var errs []error
	for _, e := range entries {
		last := e.lastUsed.Load()
		if last == e.written {
			continue
		}
		if err := s.records.Put(e.key.ID, e.shown(), false); err != nil {
			errs = append(errs, err)
			continue
		}
		e.written = last
	}
	return errors.Join(errs...)
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
// ResourceExhausted, Storage.
func (s *Store) Create(by *Principal, r Request) (Key, string, error) {
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
	s.disk.Lock()
	defer s.disk.Unlock()
	if len(s.byID) >= maxKeys { // read without mu: byID changes only while disk is held
		return Key{}, "", fault.New(fault.ResourceExhausted, "there are %d keys, which is the most: delete some of them", maxKeys)
	}
	if err := s.records.Put(k.ID, k, true); err != nil {
		return Key{}, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(k)
	return k, secret, nil
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
// KeyNotFound, Storage.
func (s *Store) Delete(id string) error {
	s.disk.Lock()
	defer s.disk.Unlock()
	e := s.byID[id]
	if e == nil {
		return fault.New(fault.KeyNotFound, "no key %q", id)
	}
	if err := s.records.Delete(id); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.byID, id)
	delete(s.byHash, e.key.Hash)
	s.mu.Unlock()
	return s.records.Sync() // or a power cut would bring the key back
}

// Close writes the last-used times that are not on disk yet. Errors: Storage.
func (s *Store) Close() error {
	s.disk.Lock()
	defer s.disk.Unlock()
	s.mu.Lock()
	if s.flush != nil {
		s.flush.Stop()
	}
	s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.write()
}
