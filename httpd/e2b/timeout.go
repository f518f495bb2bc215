package e2b

import (
	"context"
	"net/http"
	"time"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// setTimeout gives a box a new time to live, from now on.
func (s *Server) setTimeout(w http.ResponseWriter, r *http.Request) error {
	var asked struct {
		Timeout *int `json:"timeout"`
	}
	if err := readJSON(r, &asked); err != nil {
		return err
	}
	if asked.Timeout == nil {
		return fault.New(fault.Malformed, "the body has no timeout")
	}
	rec, err := s.up(r)
	if err != nil {
		return err
	}
	seconds := *asked.Timeout
	if seconds == 0 {
		seconds = 1 // E2B ends the box at once; here 0 would be no end at all
	}
	if err := s.update(r.Context(), rec.ID, options.Update{TTLSeconds: &seconds}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// refreshBox gives a box more time, as SDKs did before setTimeout.
func (s *Server) refreshBox(w http.ResponseWriter, r *http.Request) error {
	asked := struct {
		Duration int `json:"duration"`
	}{Duration: defaultTimeout}
	if err := readJSON(r, &asked); err != nil {
		return err
	}
	rec, err := s.up(r)
	if err != nil {
		return err
	}
	if err := s.extend(r.Context(), rec.ID, asked.Duration); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// extend gives a box at least so many seconds from now on. It never takes time away.
func (s *Server) extend(ctx context.Context, id string, seconds int) error {
	one := s.accounts.of(id)
	one.extending.Lock() // what another request gives meanwhile would be taken away
	defer one.extending.Unlock()
	rec, err := s.Runtime.Find(ctx, id)
	if err != nil || rec.ExpiresAt == nil || time.Until(*rec.ExpiresAt) >= time.Duration(seconds)*time.Second {
		return err
	}
	return s.update(ctx, id, options.Update{TTLSeconds: &seconds})
}

// update changes a box. Errors: BoxNotFound, InvalidArgument.
func (s *Server) update(ctx context.Context, id string, u options.Update) error {
	if err := u.Check(); err != nil {
		return err
	}
	_, err := s.Runtime.At(id).Update(ctx, u)
	return err
}
