package httpd

import (
	"net/http"
	"net/url"

	"sandbox/api"
	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// statFile shows a file of a box, without its content.
func (s *Server) statFile(w http.ResponseWriter, r *request) error {
	file, err := s.stat(r)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, file)
}

// hasFile tells by its status alone whether there is a file.
func (s *Server) hasFile(w http.ResponseWriter, r *request) error {
	if _, err := s.stat(r); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// stat returns the file that the query names.
func (s *Server) stat(r *request) (api.File, error) {
	query, err := r.pathQuery()
	if err != nil {
		return api.File{}, err
	}
	box, err := s.box(r)
	if err != nil {
		return api.File{}, err
	}
	return box.StatFile(r.Context(), options.StatFile{Path: query.Get("path"), User: query.Get("user")})
}

// pathQuery returns the query string, which must have a path. Errors: those of query.
func (r *request) pathQuery() (url.Values, error) {
	query, err := r.query()
	if err != nil {
		return nil, err
	}
	var p document.Problems
	p.Required("path", query.Has("path"))
	return query, p.Err(fault.InvalidArgument)
}

// listFiles lists the files below a directory of a box, a page at a time.
func (s *Server) listFiles(w http.ResponseWriter, r *request) error {
	query, err := r.pathQuery()
	if err != nil {
		return err
	}
	o := options.ListFiles{Path: query.Get("path"), PageToken: query.Get("page_token"), User: query.Get("user")}
	if err := number(query, "depth", &o.Depth, 1, options.MaxDepth); err != nil {
		return err
	}
	if err := number(query, "page_size", &o.PageSize, 1, options.MaxFilePage); err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	page, err := box.ListFiles(r.Context(), o)
	if err != nil {
		return err
	}
	return writeDocument(w, http.StatusOK, encodeFiles(page))
}

// makeDirectory makes a directory in a box.
func (s *Server) makeDirectory(w http.ResponseWriter, r *request) error {
	var body struct {
		Path *string `json:"path"`
		Mode *string `json:"mode"`
		User string  `json:"user"`
	}
	var p document.Problems
	if err := r.members(w, &p, &body); err != nil {
		return err
	}
	p.Required("path", body.Path != nil)
	o := options.MakeDirectory{User: body.User}
	if body.Mode != nil {
		var err error
		o.Mode, err = octal(*body.Mode)
		p.When(err != nil, "mode", "value", notOctal)
	}
	if err := p.Err(fault.InvalidArgument); err != nil {
		return err
	}
	o.Path = *body.Path
	box, err := s.box(r)
	if err != nil {
		return err
	}
	made, err := box.MakeDirectory(r.Context(), o)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, made)
}

// moveFile gives a file of a box another path.
func (s *Server) moveFile(w http.ResponseWriter, r *request) error {
	var body struct {
		From *string `json:"from"`
		To   *string `json:"to"`
		User string  `json:"user"`
	}
	var p document.Problems
	if err := r.members(w, &p, &body); err != nil {
		return err
	}
	p.Required("from", body.From != nil)
	p.Required("to", body.To != nil)
	if err := p.Err(fault.InvalidArgument); err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	file, err := box.MoveFile(r.Context(), options.MoveFile{From: *body.From, To: *body.To, User: body.User})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, file)
}

// removedFiles is the reply to a removal of files.
type removedFiles struct {
	OK bool `json:"ok"`
	api.RemovedFiles
}

// removeFile removes a file or a directory of a box.
func (s *Server) removeFile(w http.ResponseWriter, r *request) error {
	query, err := r.pathQuery()
	if err != nil {
		return err
	}
	o := options.RemoveFile{Path: query.Get("path"), User: query.Get("user")}
	if o.Recursive, err = flag(query, "recursive"); err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	removed, err := box.RemoveFile(r.Context(), o)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, removedFiles{OK: true, RemovedFiles: removed})
}
