package backend

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
)

// made is what was made on a server from here, as a [core.Runtime] counts it for a
// host.
type made struct {
	owned bool // boxes with auto_remove end with Close

	created, failed, execs, execErrors atomic.Int64

	mu       sync.Mutex
	shutdown bool
	boxes    map[string]bool // by id, whether they have auto_remove; some of them are gone
	most     int             // how many there may be before those that are gone are looked for
}

// refuseAfterShutdown returns an error after a shutdown. Errors: Stopped.
func (m *made) refuseAfterShutdown() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stopped()
}

// stopped is refuseAfterShutdown where mu is held.
func (m *made) stopped() error {
	if m.shutdown {
		return fault.New(fault.Stopped, "the runtime was shut down")
	}
	return nil
}

// remember notes a box. It refuses one that was made while the shutdown went on.
// Errors: Stopped.
func (m *made) remember(id string, autoRemove bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.stopped()
	if err == nil {
		m.boxes[id] = autoRemove
	}
	return err
}

// forgetGone forgets the boxes that are gone, when many are noted. list returns all that
// there are. What fails is tried again by the next create.
func (m *made) forgetGone(list func() ([]api.Box, error)) {
	m.mu.Lock()
	many := len(m.boxes) > max(m.most, core.MaxBoxes)
	m.mu.Unlock()
	if !many || core.ForgetGone(&m.mu, m.boxes, func() ([]string, error) { return api.BoxIDs(list()) }) != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.most = 2 * len(m.boxes)
}

func (m *made) forget(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.boxes, id)
}

// shut begins the shutdown and returns the boxes that are to be stopped; none when it has
// begun already.
func (m *made) shut() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shutdown {
		return nil
	}
	m.shutdown = true
	return slices.Collect(maps.Keys(m.boxes))
}

// take ends the making of boxes, and returns those that end with it.
func (m *made) take() (ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shutdown = true
	for id, autoRemove := range m.boxes {
		if autoRemove && m.owned {
			ids = append(ids, id)
		}
	}
	clear(m.boxes)
	return ids
}

// Keep has the boxes go on after Close.
func (m *made) Keep() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owned = false
	return nil
}

// forEach calls do for all ids at the same time and joins the failures.
func forEach(ids []string, do func(id string) error) error {
	errs := make([]error, len(ids))
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() { errs[i] = do(id) })
	}
	all.Wait()
	return errors.Join(errs...)
}
