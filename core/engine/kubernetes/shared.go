package kubernetes

import (
	"bytes"
	"context"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"sandbox/core/fault"
)

// Shared is a Secret whose entries all programs on a namespace share. It is safe for
// concurrent use.
type Shared struct {
	engine *Engine
	name   string

	mu      sync.Mutex // held while changed is called
	changed func(map[string][]byte)
	version uint64 // of what changed was called with last
	known   bool   // it was called
	failed  error  // of the last try to watch; nil once that works
	news    *news  // of known and failed
}

// Shared returns the Secret of this name, which the first entry makes.
func (e *Engine) Shared(name string) *Shared {
	return &Shared{engine: e, name: name, news: newNews()}
}

// Follow calls changed with all entries, which nobody may change: once before it returns,
// and then after each change by any program until ctx ends or the Engine is closed. The
// calls come one at a time and in the order of the changes. While the API server is away
// there are none. Follow is called once. Errors: those of failure, before the first call.
func (s *Shared) Follow(ctx context.Context, changed func(entries map[string][]byte)) error {
	s.changed = changed
	asked := ctx
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(s.engine.ctx, cancel)
	s.engine.work.Go(func() {
		defer cancel()
		pick := func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.name).String()
		}
		mirror(ctx, s.engine.api.secrets, pick, &corev1.Secret{}, s, s.note)
	})
	err := s.news.await(asked, func() (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.known {
			return true, nil
		}
		return false, s.failed
	})
	if err != nil {
		cancel()
	}
	return failure(err, "follow the Secret %s", s.name)
}

// Change has change edit the entries as they are now, and keeps what it leaves. The API
// server takes only a change of the latest version, so change is called again if another
// program was faster. Follow has called changed before Change returns. Errors: those of
// change; ResourceExhausted if the entries have more than a Secret may hold, 1 MiB; those
// of failure.
func (s *Shared) Change(ctx context.Context, change func(entries map[string][]byte) error) error {
	for {
		now, err := s.engine.api.secrets.Get(ctx, s.name, metav1.GetOptions{})
		fresh := apierrors.IsNotFound(err)
		if err != nil && !fresh {
			return failure(err, "read the Secret %s", s.name)
		}
		next := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Type: corev1.SecretTypeOpaque}
		if !fresh {
			next = now.DeepCopy()
		}
		if next.Data == nil {
			next.Data = map[string][]byte{}
		}
		if err := change(next.Data); err != nil {
			return err
		}
		if !fresh && maps.EqualFunc(now.Data, next.Data, bytes.Equal) {
			return nil
		}
		if size(next.Data) > corev1.MaxSecretSize {
			return fault.New(fault.ResourceExhausted, "the Secret %s is full: delete some of what it has", s.name)
		}
		if fresh {
			now, err = s.engine.api.secrets.Create(ctx, next, metav1.CreateOptions{})
		} else {
			now, err = s.engine.api.secrets.Update(ctx, next, metav1.UpdateOptions{})
		}
		switch {
		case err == nil:
			s.take(version(now), now.Data)
			return nil
		case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !(apierrors.IsNotFound(err) && !fresh):
			return failure(err, "change the Secret %s", s.name)
		}
	}
}

// size returns how many bytes the entries of a Secret have, as the API server counts them.
func size(entries map[string][]byte) (n int) {
	for _, entry := range entries {
		n += len(entry)
	}
	return n
}

// take takes in the entries of a version, unless it has those of a later one.
func (s *Shared) take(version uint64, entries map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known && version <= s.version {
		return
	}
	s.version, s.known = version, true
	s.changed(entries)
	s.news.tell()
}

// note notes how a request went.
func (s *Shared) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
	s.news.tell()
}

// Add implements [cache.ReflectorStore].
func (s *Shared) Add(o any) error { return s.Update(o) }

// Update implements [cache.ReflectorStore].
func (s *Shared) Update(o any) error {
	if secret, ok := o.(*corev1.Secret); ok {
		s.take(version(secret), secret.Data)
	}
	return nil
}

// Delete implements [cache.ReflectorStore].
func (s *Shared) Delete(o any) error {
	if secret, ok := o.(*corev1.Secret); ok {
		s.take(version(secret), nil)
	}
	return nil
}

// Replace implements [cache.ReflectorStore].
func (s *Shared) Replace(list []any, at string) error {
	var entries map[string][]byte
	for _, o := range list { // at most the one
		if secret, ok := o.(*corev1.Secret); ok {
			entries = secret.Data
		}
	}
	s.take(version(&metav1.ObjectMeta{ResourceVersion: at}), entries)
	return nil
}

// Resync implements [cache.ReflectorStore].
func (*Shared) Resync() error { return nil }
