package mcp

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// session is what one client made.
type session struct {
	*Server

	mu     sync.Mutex
	boxes  map[string]string // names by id
	making int               // creates that go on
}

// create makes a box that ends with the session. Errors: ResourceExhausted (it has
// the most that it may), and those of a create.
func (s *session) create(ctx context.Context, o options.Box) (api.Box, error) {
	if err := o.Check(); err != nil {
		return api.Box{}, err
	}
	if err := s.room(ctx); err != nil {
		return api.Box{}, err
	}
	b, err := s.Boxes.CreateBox(ctx, o)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.making--
	if err == nil {
		s.boxes[b.ID] = o.Name
	}
	return b, err
}

// room is reserve that looks first, where there is no room, which boxes have ended without
// the session.
func (s *session) room(ctx context.Context) error {
	if s.reserve() == nil {
		return nil
	}
	list := func() ([]string, error) { return api.BoxIDs(s.Boxes.Boxes(ctx, client.Filter{})) }
	if err := core.ForgetGone(&s.mu, s.boxes, list); err != nil {
		return err
	}
	return s.reserve()
}

// reserve counts a box that is about to be made. Errors: ResourceExhausted.
func (s *session) reserve() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.boxes)+s.making >= s.MaxBoxes {
		return fault.New(fault.ResourceExhausted, "there are %d boxes already, the most that a session may have: remove one with remove_box", s.MaxBoxes)
	}
	s.making++
	return nil
}

// box returns what to address a box by. Errors: BoxNotFound (it is neither of this
// session nor shared).
func (s *session) box(ref string) (string, error) {
	if id, ok := s.own(ref); ok {
		return id, nil
	}
	if slices.Contains(s.Shared, ref) {
		return ref, nil
	}
	return "", fault.New(fault.BoxNotFound, "no box %.200q in this session: list_boxes lists those that there are", ref)
}

// errNotOwn is the failure to remove a box that the session did not make.
func errNotOwn(ref string) error {
	return fault.New(fault.BoxNotFound, "this session made no box %.200q, and removes no other", ref)
}

// own returns the id of a box that the session made, by its id or name.
func (s *session) own(ref string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, name := range s.boxes {
		if ref == id || ref == name && name != "" {
			return id, true
		}
	}
	return "", false
}

// reaches tells whether the session may use a box.
func (s *session) reaches(b api.Box) bool {
	if _, own := s.own(b.ID); own {
		return true
	}
	return slices.Contains(s.Shared, b.ID) || b.Name != nil && slices.Contains(s.Shared, *b.Name)
}

// remove removes a box of the session, whoever may still use it. A box that is gone
// already is forgotten.
func (s *session) remove(ctx context.Context, id string) error {
	_, err := s.Boxes.RemoveBox(ctx, id, true)
	if err != nil && !fault.Is(err, fault.BoxNotFound) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.boxes, id)
	return err
}

// removing bounds how long it takes to remove the boxes of a session.
const removing = 15 * time.Second

// close removes all boxes of the session, at the same time.
func (s *session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), removing)
	defer cancel()
	var all sync.WaitGroup
	for id := range s.boxes { // no call is in flight that could change them
		all.Go(func() {
			_, err := s.Boxes.RemoveBox(ctx, id, true)
			if err != nil && !fault.Is(err, fault.BoxNotFound) && s.Log != nil {
				s.Log.LogAttrs(ctx, slog.LevelError, "a box of a session of MCP was not removed", slog.String("box", id), slog.Any("error", err))
			}
		})
	}
	all.Wait()
}
