package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"
)

// Shared is a place outside of this host where several servers keep the records of their
// keys, by the keys' ids. It is safe for concurrent use.
type Shared interface {
	// Follow calls changed with all records: once before it returns, and then after
	// each change by any server until ctx ends. The calls come one at a time and in the
	// order of the changes. Errors: those of the place, before the first call.
	Follow(ctx context.Context, changed func(records map[string][]byte)) error
	// Change has change edit the records as they are now, and keeps what it leaves.
	// change is called again if another server was faster. Follow has called changed
	// before Change returns. Errors: those of change and of the place.
	Change(ctx context.Context, change func(records map[string][]byte) error) error
}

// sharedLag is how far the last-used times in a [Shared] may lag behind: each write of
// them is a change that every server hears of.
const sharedLag = time.Minute

// shared keeps keys in a Shared.
type shared struct {
	*Store
	place  Shared
	log    *slog.Logger
	cancel context.CancelFunc

	mu     sync.Mutex
	before map[string][]byte // the records that the Store knows of
}

// OpenShared opens the keys that several servers share: a key that one of them makes or
// deletes is known or refused at all of them as soon as place tells them. A record that
// can't be read is logged, and its key refused. log may be nil. Errors: those of place.
func OpenShared(place Shared, log *slog.Logger) (*Store, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := newStore(sharedLag)
	k := &shared{Store: s, place: place, log: log}
	s.keeper = k
	ctx, cancel := context.WithCancel(context.Background())
	k.cancel = cancel
	if err := place.Follow(ctx, k.changed); err != nil {
		cancel()
		return nil, err
	}
	return s, nil
}

// Shared reports whether several servers share the keys.
func (s *Store) Shared() bool {
	_, is := s.keeper.(*shared)
	return is
}

// changed brings the Store up to date.
func (s *shared) changed(records map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, record := range records {
		if bytes.Equal(record, s.before[id]) {
			continue
		}
		var k Key
		if err := json.Unmarshal(record, &k); err != nil || k.ID != id {
			s.log.Error("the record of a key is damaged, and the key is refused: delete it", "key_id", id, "error", err)
			s.drop(id)
			continue
		}
		s.set(k)
	}
	for id := range s.before {
		if _, ok := records[id]; !ok {
			s.drop(id)
		}
	}
	s.before = records
}

func (s *shared) create(ctx context.Context, k Key) error {
	record, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return s.place.Change(ctx, func(records map[string][]byte) error {
		if len(records) >= maxKeys {
			return errTooMany()
		}
		records[k.ID] = record
		return nil
	})
}

func (s *shared) delete(ctx context.Context, id string) error {
	return s.place.Change(ctx, func(records map[string][]byte) error {
		if _, ok := records[id]; !ok {
			return errNoKey(id)
		}
		delete(records, id)
		return nil
	})
}

// used keeps the later of two times, and only of keys that nobody has deleted meanwhile.
func (s *shared) used(ctx context.Context, keys []Key) error {
	return s.place.Change(ctx, func(records map[string][]byte) error {
		for _, k := range keys {
			var now Key
			if json.Unmarshal(records[k.ID], &now) != nil || now.LastUsedAt != nil && !k.LastUsedAt.After(*now.LastUsedAt) {
				continue
			}
			now.LastUsedAt = k.LastUsedAt
			record, err := json.Marshal(now)
			if err != nil {
				return err
			}
			records[k.ID] = record
		}
		return nil
	})
}

func (s *shared) close() { s.cancel() }
