package auth

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core/fault"
)

// memory is a Shared without a cluster.
type memory struct {
	mu      sync.Mutex
	records map[string][]byte
	servers []func(map[string][]byte)
	late    bool // of a change nobody is told
}

func (m *memory) Follow(_ context.Context, changed func(map[string][]byte)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.servers = append(m.servers, changed)
	changed(m.records)
	return nil
}

func (m *memory) Change(_ context.Context, change func(map[string][]byte) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	records := maps.Clone(m.records)
	if records == nil {
		records = map[string][]byte{}
	}
	if err := change(records); err != nil {
		return err
	}
	m.records = records
	for _, changed := range m.servers {
		if !m.late {
			changed(records)
		}
	}
	return nil
}

func openShared(t *testing.T, place Shared) *Store {
	t.Helper()
	s, err := OpenShared(place, nil)
	return opened(t, s, err)
}

// TestShared has a key made at one server work at another, until any of them deletes it.
func TestShared(t *testing.T) {
	t.Parallel()
	place := &memory{}
	a, b := openShared(t, place), openShared(t, place)
	k, secret := create(t, a, api.MayUseBoxes)
	for name, s := range map[string]*Store{"the maker": a, "another": b, "one that starts": openShared(t, place)} {
		if p, err := s.Verify(secret); err != nil || p.Sub != k.ID {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if bytes.Contains(place.records[k.ID], []byte(secret)) {
		t.Error("the secret is kept")
	}
	if err := b.Delete(t.Context(), k.ID); err != nil {
		t.Fatal(err)
	}
	refused(t, a, secret)
	refused(t, b, secret)
	if err := a.Delete(t.Context(), k.ID); !fault.Is(err, fault.KeyNotFound) {
		t.Errorf("a second delete: %v", err)
	}
}

// TestSharedUse has the last use win, wherever it was, and a key that is deleted
// meanwhile stay deleted.
func TestSharedUse(t *testing.T) {
	t.Parallel()
	place := &memory{}
	a, b := openShared(t, place), openShared(t, place)
	kept, one := create(t, a, api.MayUseBoxes)
	gone, two := create(t, a, api.MayUseBoxes)
	for _, secret := range []string{one, two} {
		if _, err := a.Verify(secret); err != nil {
			t.Fatal(err)
		}
	}
	later := time.Now().Add(time.Hour).Unix()
	b.byID[kept.ID].lastUsed.Store(later)
	place.late = true // a has not heard yet
	if err := b.Delete(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	b.writeUsed()
	a.writeUsed()
	fresh := openShared(t, place)
	keys := fresh.List()
	if len(keys) != 1 || keys[0].ID != kept.ID || keys[0].LastUsedAt == nil || keys[0].LastUsedAt.Unix() != later {
		t.Errorf("%+v, want only %s, used at %d", keys, kept.ID, later)
	}
}

// TestSharedDamage has one damaged record refuse its key alone.
func TestSharedDamage(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	place := &memory{}
	s, err := OpenShared(place, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, good := create(t, s, api.MayUseBoxes)
	k, bad := create(t, s, api.MayUseBoxes)
	if err := place.Change(t.Context(), func(records map[string][]byte) error {
		records[k.ID] = []byte("{")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	refused(t, s, bad)
	if _, err := s.Verify(good); err != nil || !strings.Contains(log.String(), k.ID) {
		t.Errorf("%v; the log says %q", err, log.String())
	}
	if err := s.Delete(t.Context(), k.ID); err != nil {
		t.Error(err)
	}
}
