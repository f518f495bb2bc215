package boxlog

import (
	"slices"

	"sandbox/spool"
)

// maxHeld is how many runs of a box stay open while the engine takes no rows, and maxRemoved
// how many removed boxes may wait for it with theirs: the disk keeps what is in them, of
// each run at most what the shim keeps of it.
const maxHeld, maxRemoved = 2, 16

// A held run stays open until its rows are stored.
type held struct {
	place  spool.Place
	e      *spool.Exec
	reader *spool.Observer // which reads nothing
}

// open returns a run, and keeps its files open until shut: what is in them can be stored
// after its box was removed, and the files with it. Errors: ExecNotFound, Storage.
func (s *service) open(place spool.Place) (*spool.Exec, error) {
	if h, ok := s.held[place.ID]; ok {
		return h.e, nil
	}
	e, err := s.runs.Get(s.box, place.ID)
	if err != nil {
		return nil, err
	}
	reader, err := e.Observe([2]int64{})
	if err != nil {
		return nil, err
	}
	s.held[place.ID] = held{place, e, reader}
	return e, nil
}

// shut ends what open began, if it did.
func (s *service) shut(id string) {
	if h, ok := s.held[id]; ok {
		h.reader.Close()
		delete(s.held, id)
	}
}

// places returns the runs that the shim keeps and those that are open, newest first.
func (s *service) places() []spool.Place {
	places := s.runs.Places(s.box)
	for id, h := range s.held {
		if !slices.ContainsFunc(places, func(one spool.Place) bool { return one.ID == id }) {
			places = append(places, h.place)
		}
	}
	slices.SortFunc(places, func(a, b spool.Place) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return places
}

// hold opens the latest runs that are not stored, and no others: the box may be removed
// before the engine takes rows again.
func (s *service) hold() {
	for i, place := range s.places() {
		if i >= maxHeld || s.at.Runs[place.ID].Ended {
			s.shut(place.ID)
			continue
		}
		_, _ = s.open(place) // round meets the failure too, and returns it
	}
}

// stays reports whether a box that was removed may wait for the engine.
func (s *service) stays() bool {
	if s.waits {
		return true
	}
	select {
	case s.r.removed <- struct{}{}:
		s.waits = true
	default:
		s.r.Log.Warn("the end of a main command's output is left out of the log table: too many removed boxes wait for the log engine", "box_id", s.box)
	}
	return s.waits
}

// leave gives up what the service holds.
func (s *service) leave() {
	for id := range s.held {
		s.shut(id)
	}
	if s.waits {
		<-s.r.removed
	}
}
