package httpd

import (
	"net/http"

	"sandbox/api"
	"sandbox/core/document"
	"sandbox/core/fault"
)

// writeStdin writes the body to the input of an exec that no client is attached to.
// The reply comes when the command's pipe has taken all of it; with the query's
// close, the input ends then.
func (s *Server) writeStdin(w http.ResponseWriter, r *request) error {
	query, err := r.query()
	if err != nil {
		return err
	}
	last, err := flag(query, "close")
	if err != nil {
		return err
	}
	e, err := s.spooled(r)
	if err != nil {
		return err
	}
	n, err := e.WriteStdin(r.Context(), rawBody{r.Body}, last)
	if err != nil {
		return fault.Wrap(fault.Of(err).Kind, err, "after %d bytes of input", n)
	}
	return writeJSON(w, http.StatusOK, api.Written{Bytes: n})
}

// closeStdin ends the input of an exec that no client is attached to.
func (s *Server) closeStdin(w http.ResponseWriter, r *request) error {
	e, err := s.spooled(r)
	if err != nil {
		return err
	}
	if err := e.CloseStdin(r.Context()); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, e.Record())
}

// resizeExec sets the size of an exec's terminal, whoever is attached.
func (s *Server) resizeExec(w http.ResponseWriter, r *request) error {
	cols, rows, err := r.size(w)
	if err != nil {
		return err
	}
	e, err := s.spooled(r)
	if err != nil {
		return err
	}
	if err := e.Resize(r.Context(), cols, rows); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, e.Record())
}

// size reads the size of a terminal from the body. Errors: Malformed,
// InvalidArgument.
func (r *request) size(w http.ResponseWriter) (cols, rows int, err error) {
	var body struct {
		Cols *int `json:"cols"`
		Rows *int `json:"rows"`
	}
	var p document.Problems
	if err := r.members(w, &p, &body); err != nil {
		return 0, 0, err
	}
	p.Required("cols", body.Cols != nil)
	p.Required("rows", body.Rows != nil)
	if err := p.Err(fault.Malformed); err != nil {
		return 0, 0, err
	}
	p.Within("cols", *body.Cols, 1, maxSide)
	p.Within("rows", *body.Rows, 1, maxSide)
	return *body.Cols, *body.Rows, p.Err(fault.InvalidArgument)
}
