package e2b

import (
	"context"
	"errors"
	"sync"

	"connectrpc.com/connect"
	"github.com/google/uuid"

	"sandbox/core/fault"
	"sandbox/httpd/e2b/protocol"
)

// watcher is a watch whose client asks for its events now and then.
type watcher struct {
	box    string
	cancel context.CancelFunc

	mu     sync.Mutex
	events []*protocol.FilesystemEvent
	failed error // told once, behind the events before it
}

const (
	maxWatchers = 64     // of one box
	maxEvents   = 65_536 // that wait for a client
)

// watchers are the watches of all boxes. Each ends with its box, when its client
// removes it, or with the server.
type watchers struct {
	mu   sync.Mutex
	byID map[string]*watcher
	ends sync.WaitGroup
}

// add adds a watcher. Errors: ResourceExhausted.
func (w *watchers) add(id string, one *watcher) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, other := range w.byID {
		if other.box == one.box {
			n++
		}
	}
	if n >= maxWatchers {
		return fault.New(fault.ResourceExhausted, "the sandbox has %d watchers already: remove one", n)
	}
	if w.byID == nil {
		w.byID = map[string]*watcher{}
	}
	w.byID[id] = one
	return nil
}

// get returns a watcher of a box. Errors: NotFound.
func (w *watchers) get(box, id string) (*watcher, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one, ok := w.byID[id]; ok && one.box == box {
		return one, nil
	}
	return nil, fault.New(fault.NotFound, "no watcher %.40q: it was removed, or its directory is gone", id)
}

func (w *watchers) remove(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byID, id)
}

// wait waits until all watchers have ended.
func (w *watchers) wait() { w.ends.Wait() }

// createWatcher begins to watch a directory for a client that will ask.
func (s *Server) createWatcher(ctx context.Context, q *connect.Request[protocol.CreateWatcherRequest]) (*protocol.CreateWatcherResponse, error) {
	watching, cancel := s.streaming(context.WithoutCancel(ctx))
	one := &watcher{box: visitOf(ctx).box.ID(), cancel: cancel}
	id := uuid.NewString()
	if err := s.watchers.add(id, one); err != nil {
		cancel()
		return nil, err
	}
	d, err := s.watched(ctx, watching, q.Msg.GetPath(), q.Msg.GetRecursive(), q.Msg.GetIncludeEntry())
	if err != nil {
		s.watchers.remove(id)
		cancel()
		return nil, err
	}
	s.watchers.ends.Go(func() {
		defer s.watchers.remove(id)
		defer cancel()
		defer func() { _ = d.Close() }()
		one.collect(watching, d)
	})
	return &protocol.CreateWatcherResponse{WatcherId: id}, nil
}

// collect keeps events until the watch ends.
func (w *watcher) collect(ctx context.Context, d *directory) {
	for {
		events, err := d.next(ctx)
		if err != nil && !errors.Is(err, errOverflow) {
			return
		}
		w.keep(events, err)
	}
}

// keep keeps events. When too many wait they are dropped, and the client is told; until it
// has been told, nothing more is kept.
func (w *watcher) keep(events []*protocol.FilesystemEvent, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		return
	}
	if len(w.events)+len(events) > maxEvents {
		w.events, err = nil, errOverflow
	}
	if err != nil {
		w.failed = err
		return
	}
	w.events = append(w.events, events...)
}

// take returns what has happened since the last call.
func (w *watcher) take() ([]*protocol.FilesystemEvent, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.events) == 0 && w.failed != nil {
		err := w.failed
		w.failed = nil
		return nil, err
	}
	events := w.events
	w.events = nil
	return events, nil
}

func (s *Server) watcherEvents(ctx context.Context, q *connect.Request[protocol.GetWatcherEventsRequest]) (*protocol.GetWatcherEventsResponse, error) {
	one, err := s.watchers.get(visitOf(ctx).box.ID(), q.Msg.GetWatcherId())
	if err != nil {
		return nil, err
	}
	events, err := one.take()
	if err != nil {
		return nil, err
	}
	return &protocol.GetWatcherEventsResponse{Events: events}, nil
}

func (s *Server) removeWatcher(ctx context.Context, q *connect.Request[protocol.RemoveWatcherRequest]) (*protocol.RemoveWatcherResponse, error) {
	one, err := s.watchers.get(visitOf(ctx).box.ID(), q.Msg.GetWatcherId())
	if err != nil {
		return nil, err
	}
	s.watchers.remove(q.Msg.GetWatcherId())
	one.cancel()
	return &protocol.RemoveWatcherResponse{}, nil
}
