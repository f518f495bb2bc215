package spool

import (
	"context"

	"sandbox/core"
	"sandbox/core/fault"
)

// TakeOver follows an exec that another server has followed and left, from the oldest
// output that its box still has: its readers see a gap where that one has had more. attach
// attaches to the exec behind a position; of callers that come at once only one attaches.
// An exec that is followed already is returned as it is. What the store has of an earlier
// time is forgotten. Errors: those of attach; Storage, ResourceExhausted, after which the
// exec can be taken over again.
func (s *Store) TakeOver(ctx context.Context, box, id string, attach func(context.Context, core.Position) (*core.Exec, error)) (*Exec, error) {
	for {
		e, err, _ := s.taking.Do(id, func() (any, error) { return s.takeOver(ctx, box, id, attach) })
		switch {
		case err == nil:
			return e.(*Exec), nil
		case ctx.Err() == nil && fault.Is(err, fault.Canceled):
			continue // the caller that attached has left
		}
		return nil, err
	}
}

func (s *Store) takeOver(ctx context.Context, box, id string, attach func(context.Context, core.Position) (*core.Exec, error)) (*Exec, error) {
	s.mu.Lock()
	e := s.live[id]
	s.mu.Unlock()
	if e != nil {
		return e, nil
	}
	command, err := attach(ctx, core.Position{})
	if err != nil {
		return nil, err
	}
	s.erase(box, id)
	rec := command.Record()
	e = s.exec(written{Exec: rec})
	e.command, e.open = command, command.Stdin() != nil
	if err = s.records(box).Put(id, written{Exec: rec}, false); err == nil {
		err = s.begin(e)
	}
	if err != nil {
		_ = command.Detach() // for this server's next try, or another's
		s.erase(box, id)
		return nil, err
	}
	s.remember(box, placeOf(rec))
	return e, nil
}
