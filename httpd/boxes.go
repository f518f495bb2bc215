package httpd

import (
	"cmp"
	"context"
	"net/http"
	"path"
	"time"

	"sandbox/core"
	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// createBox makes a box and starts it. A client that does not know whether its
// last try succeeded sends the request again with the same Idempotency-Key.
func (s *Server) createBox(w http.ResponseWriter, r *request) error {
	doc, err := r.document(w, maxBody)
	if err != nil {
		return err
	}
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return err
	}
	made, err := s.Idempotency.once(r.Context(), key, doc,
		func(id string) (created, error) { return s.create(r, id, doc) },
		func(id string) bool { return s.mayExist(r.Context(), id) })
	if err != nil {
		return err
	}
	w.Header().Set("Location", s.base(r)+"/boxes/"+made.ID)
	return writeDocument(w, http.StatusCreated, made.Document)
}

// base returns the path below which r's client finds the routes of boxes.
func (s *Server) base(r *request) string {
	switch {
	case r.by == BySession:
		return path.Join(consoleAPI, "v1", s.Prefix)
	case s.Hosted:
		return "/api/v1"
	}
	return path.Join("/v1", s.Prefix)
}

// create returns the box with this id, and makes it if there is none.
func (s *Server) create(r *request, id string, doc []byte) (created, error) {
	if doc == nil {
		doc = []byte("{}") // every member has a default
	}
	o, err := options.DecodeCreate(doc, s.complete(r), s.Runtime.CheckLimits)
	if err != nil {
		return created{}, err
	}
	_, rec, err := s.Runtime.CreateOnce(r.Context(), id, o)
	if err != nil {
		return created{}, err
	}
	doc, err = encode(rec.Info())
	return created{ID: rec.ID, Document: doc}, err
}

// mayExist tells whether there is a box with this id, or whether that is not
// known.
func (s *Server) mayExist(ctx context.Context, id string) bool {
	_, err := s.Runtime.Find(ctx, id)
	return !fault.Is(err, fault.BoxNotFound)
}

// complete sets in a box what is for this server to decide, and checks the
// client's choices that the server restricts.
func (s *Server) complete(r *request) options.HostCheck {
	return func(o *options.Box, p *document.Problems) error {
		return cmp.Or(s.checkPaths(r, o, p), s.checkPorts(r, o, p))
	}
}

// box returns the box that the path names. Errors: BoxNotFound, Ambiguous.
func (s *Server) box(r *request) (*core.Box, error) {
	return s.Runtime.Get(r.Context(), r.param("id"))
}

func (s *Server) getBox(w http.ResponseWriter, r *request) error {
	rec, err := s.Runtime.Find(r.Context(), r.param("id"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, rec.Info())
}

// boxMetrics replies with the measured usage of a box, or with a series of what was
// measured.
func (s *Server) boxMetrics(w http.ResponseWriter, r *request) error {
	query, err := r.query()
	if err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	if asksForSeries(query) {
		return s.boxSeries(w, r, box.ID(), query)
	}
	m, err := box.Metrics(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, m)
}

// removed is the reply to a removal.
type removed struct {
	OK bool   `json:"ok"`
	ID string `json:"id"`
}

func (s *Server) removeBox(w http.ResponseWriter, r *request) error {
	query, err := r.query()
	if err != nil {
		return err
	}
	force, err := flag(query, "force")
	if err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	if err := s.Runtime.Remove(r.Context(), box.ID(), force); err != nil {
		return err
	}
	s.Spool.Remove(box.ID())
	return writeJSON(w, http.StatusOK, removed{OK: true, ID: box.ID()})
}

func (s *Server) startBox(w http.ResponseWriter, r *request) error {
	box, err := s.box(r)
	if err != nil {
		return err
	}
	rec, err := box.Start(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, rec.Info())
}

func (s *Server) stopBox(w http.ResponseWriter, r *request) error {
	grace, err := r.grace(w)
	if err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	rec, err := box.Stop(r.Context(), grace)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), recordTimeout)
	defer cancel()
	_ = s.Spool.AwaitRecords(ctx, rec.ID) // an attached client that does not read may hold up a record until ctx ends
	return writeJSON(w, http.StatusOK, rec.Info())
}

// maxGrace bounds the time between SIGTERM and SIGKILL: a day.
const maxGrace = 24 * 60 * 60

// grace returns the grace period of a stop, from the query or the body.
func (r *request) grace(w http.ResponseWriter) (time.Duration, error) {
	query, err := r.query()
	if err != nil {
		return 0, err
	}
	seconds := int(core.DefaultGrace / time.Second)
	if err := number(query, "timeout_seconds", &seconds, 0, maxGrace); err != nil {
		return 0, err
	}
	doc, err := r.document(w, maxBody)
	if err != nil || doc == nil {
		return time.Duration(seconds) * time.Second, err
	}
	body := struct {
		Seconds *int `json:"timeout_seconds"`
	}{&seconds}
	if err := document.Read(doc, &body); err != nil {
		return 0, err
	}
	if body.Seconds != nil {
		seconds = *body.Seconds
	}
	return time.Duration(seconds) * time.Second, within("timeout_seconds", seconds, 0, maxGrace)
}
