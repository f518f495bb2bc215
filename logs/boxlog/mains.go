package boxlog

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/logs/ingest"
	"sandbox/spool"
)

// service writes what the main command of one box prints, and what becomes of it. It
// reads from the store of the home's shim, which keeps the output while no daemon runs,
// and keeps its own position: so each line becomes one row.
type service struct {
	r      *Recorder
	box    string
	runs   *spool.Store
	at     position
	budget budget
	more   bool            // there may be runs that round has not seen
	held   map[string]held // the runs that are open, by id
	waits  bool            // it has one of the places of removed boxes

	mu    sync.Mutex
	rec   core.Record
	gone  bool               // the box was removed
	fresh bool               // rec or gone has changed since it was last looked at
	wake  context.CancelFunc // ends the present wait; nil for none
}

// serve takes the record of a box with a main command. The caller holds r.mu.
func (r *Recorder) serve(rec core.Record) {
	if r.Mains == nil || r.closed || len(rec.Options.Command) == 0 {
		return
	}
	s := r.services[rec.ID]
	if s == nil {
		s = &service{r: r, box: rec.ID, runs: r.Mains, held: map[string]held{}}
		r.services[rec.ID] = s
		s.update(rec, false)
		r.following.Go(s.work)
		return
	}
	s.update(rec, false)
}

// unserve ends the services of boxes that are not among those that there are, once
// they have stored what is left. The caller holds r.mu.
func (r *Recorder) unserve(there map[string]state) {
	for id, s := range r.services {
		if _, still := there[id]; !still {
			s.mu.Lock()
			rec := s.rec
			s.mu.Unlock()
			s.update(rec, true)
			delete(r.services, id)
		}
	}
}

func (s *service) update(rec core.Record, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rec, s.gone, s.fresh = rec, gone, true
	if s.wake != nil {
		s.wake()
	}
}

// look returns what the box is like now.
func (s *service) look() (rec core.Record, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh = false
	return s.rec, s.gone
}

// changed reports whether the box has changed since it was last looked at, and whether it
// was removed.
func (s *service) changed() (fresh, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fresh, s.gone
}

// wait waits with until, unless the box has changed since it was last looked at, and ends
// the waiting when it changes.
func (s *service) wait(until func(context.Context)) {
	ctx, cancel := context.WithCancel(s.r.ctx)
	defer cancel()
	s.mu.Lock()
	if s.fresh {
		s.mu.Unlock()
		return
	}
	s.wake = cancel
	s.mu.Unlock()
	until(ctx)
	s.mu.Lock()
	s.wake = nil
	s.mu.Unlock()
}

// work stores rows until the box is removed or the recorder closes. What a removed box has
// printed waits for the engine.
func (s *service) work() {
	defer s.leave()
	var err error
	if s.at, err = s.r.positions().Get(s.box); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.r.Log.Warn("how much of a main command's output is in the log table is not known: it is written again", "box_id", s.box, "error", err)
	}
	for told := false; s.r.ctx.Err() == nil; {
		s.more = false
		rec, gone := s.look()
		err := s.resume()
		if err == nil {
			err = s.round(rec)
		}
		if err != nil && !told && s.r.ctx.Err() == nil {
			s.r.Log.Warn("output of a main command waits for the log engine", "box_id", s.box, "error", err)
		}
		told = err != nil
		if err != nil {
			s.hold()
		}
		switch {
		case gone && !(later(err) && s.stays()):
			_ = s.r.positions().Delete(s.box)
			return
		case err != nil:
			s.wait(pause)
		case !s.more:
			s.wait(func(ctx context.Context) { <-ctx.Done() })
		}
	}
}

// pause waits until the engine may take rows again.
func pause(ctx context.Context) {
	select {
	case <-time.After(again):
	case <-ctx.Done():
	}
}

// round stores the health of the command if it has changed, and what all runs that the
// shim still keeps have printed, until the last one has ended.
func (s *service) round(rec core.Record) error {
	if err := s.health(rec); err != nil {
		return err
	}
	places := s.places()
	s.at.keep(places)
	for i := len(places) - 1; i >= 0; i-- {
		began := commandStarted
		if i+1 < len(places) && rec.StartedAt != nil && !places[i+1].CreatedAt.Before(*rec.StartedAt) {
			began = commandRestarted
		}
		if done, err := s.follow(places[i], began); err != nil || !done {
			return err
		}
	}
	return nil
}

// follow stores what a run has printed and prints. It returns false if the recorder closes
// before the end of the run. Of a box that was removed it stores what is left,
// as far as the budget goes that a run begins with.
func (s *service) follow(place spool.Place, began string) (done bool, err error) {
	id := place.ID
	defer func() {
		if done && err == nil {
			s.shut(id)
		}
	}()
	at := s.at.Runs[id]
	if at.Ended {
		return true, nil
	}
	e, err := s.open(place)
	if fault.Is(err, fault.ExecNotFound) { // the shim has dropped it meanwhile
		return true, nil
	}
	var reader *spool.Observer
	if err == nil {
		reader, err = e.Observe(at.Bytes)
	}
	if err != nil {
		return false, err
	}
	defer reader.Close()
	run := s.newRun(e, at, began)
	run.skip(reader.From())
	for last := 0; s.r.ctx.Err() == nil; {
		ended := run.read(reader)
		if err := s.insert(run.rows, func() { s.at.set(id, run.now) }); err != nil || ended {
			return ended, err
		}
		stored, took := len(run.rows) > 0, run.took
		run.rows, run.took = nil, 0
		fresh, gone := s.changed()
		if last += took; gone && last > burst {
			run.drop()
			return true, s.insert(run.rows, func() { s.at.set(id, run.now) })
		}
		switch {
		case gone && !stored: // its end comes soon
			_ = reader.Wait(s.r.ctx)
		case gone:
		case fresh: // the output stays open, as the box may be removed next
			rec, _ := s.look()
			s.more = true
			if err := s.health(rec); err != nil {
				return false, err
			}
		case stored:
			s.rest(took)
		default:
			s.wait(func(ctx context.Context) { _ = reader.Wait(ctx) })
		}
	}
	return false, nil
}

// rest waits after rows were stored, so that the next ones come together, and longer if the
// command prints more than its budget: the shim keeps it meanwhile.
func (s *service) rest(took int) {
	timer := time.NewTimer(max(linger, s.budget.spend(took, time.Now())))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.r.ctx.Done():
	}
}

// health stores a change of the command's health.
func (s *service) health(rec core.Record) error {
	if rec.Health == nil || rec.Health.Status == api.HealthStarting || rec.Command == nil {
		return nil
	}
	now := healthAt{rec.Command.ExecID, rec.Health.Status}
	if now == s.at.Health {
		return nil
	}
	return s.insert([]ingest.Row{healthRow(rec)}, func() { s.at.Health = now })
}

// A budget bounds how much of a main command's output becomes rows: burst at once, and rate
// each second from then on.
type budget struct {
	spent float64 // bytes
	at    time.Time
}

const (
	burst = 1 << 20
	rate  = 64 << 10
)

// spend notes n bytes, and returns how long to wait before the next ones.
func (b *budget) spend(n int, now time.Time) time.Duration {
	b.spent = max(0, b.spent-now.Sub(b.at).Seconds()*rate) + float64(n)
	b.at = now
	return time.Duration(max(0, b.spent-burst) / rate * float64(time.Second))
}
