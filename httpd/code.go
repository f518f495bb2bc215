package httpd

import (
	"context"
	"errors"
	"net/http"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/options"
)

// runCode runs code in a context of a box and streams what it prints and shows. A client
// that leaves interrupts it.
func (s *Server) runCode(w http.ResponseWriter, r *request) error {
	doc, err := r.document(w, options.MaxCommand)
	if err != nil {
		return err
	}
	if doc == nil {
		doc = []byte("{}") // its failure names the missing members
	}
	asked, err := options.DecodeCode(doc)
	if err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	ctx, cancel := s.streaming(r)
	defer cancel()
	run, err := s.Code.Run(ctx, box, asked)
	if err != nil {
		return s.brokenOff(err)
	}
	defer func() { _ = run.Close() }()
	kind := func(e api.CodeEvent) string { return string(e.Type) }
	err = feedStream[api.CodeEvent]{beginEvents(w), run, kind}.run(ctx, s)
	if errors.Is(err, errGone) { // nobody is left to tell
		return nil
	}
	return err
}

// createContext makes a context.
func (s *Server) createContext(w http.ResponseWriter, r *request) error {
	doc, err := r.document(w, maxBody)
	if err != nil {
		return err
	}
	if doc == nil {
		doc = []byte("{}")
	}
	asked, err := options.DecodeCodeContext(doc)
	if err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	ctx, cancel := s.streaming(r)
	defer cancel()
	about, err := s.Code.Create(ctx, box, asked)
	if err != nil {
		return s.brokenOff(err)
	}
	w.Header().Set("Location", s.base(r)+"/boxes/"+about.BoxID+"/contexts/"+about.ID)
	return writeJSON(w, http.StatusCreated, about)
}

// listContexts lists the contexts of a box, newest first. They are few, so that they
// have no pages.
func (s *Server) listContexts(w http.ResponseWriter, r *request) error {
	box, err := s.box(r)
	if err != nil {
		return err
	}
	all, err := s.Code.List(r.Context(), box)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string][]api.CodeContext{"contexts": all})
}

func (s *Server) getContext(w http.ResponseWriter, r *request) error {
	return s.onContext(w, r, s.Code.Get)
}

func (s *Server) interruptContext(w http.ResponseWriter, r *request) error {
	return s.onContext(w, r, s.Code.Interrupt)
}

func (s *Server) restartContext(w http.ResponseWriter, r *request) error {
	return s.onContext(w, r, s.Code.Restart)
}

// onContext answers with the context that the path names, after do.
func (s *Server) onContext(w http.ResponseWriter, r *request, do func(context.Context, *core.Box, string) (api.CodeContext, error)) error {
	box, err := s.box(r)
	if err != nil {
		return err
	}
	about, err := do(r.Context(), box, r.param("cid"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, about)
}

// removeContext ends a context.
func (s *Server) removeContext(w http.ResponseWriter, r *request) error {
	box, err := s.box(r)
	if err != nil {
		return err
	}
	if err := s.Code.Remove(r.Context(), box, r.param("cid")); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"ok": true, "id": r.param("cid")})
}
