package httpd

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"

	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// download streams a file out of a box or, as a tar, a file or a directory.
func (s *Server) download(w http.ResponseWriter, r *request) error {
	doc, err := r.document(w, maxBody)
	if err != nil {
		return err
	}
	var body struct {
		Path    *string `json:"path"`
		Archive *string `json:"archive"`
		User    string  `json:"user"`
	}
	var p document.Problems
	if doc != nil {
		if err := p.Read(doc, &body, document.MaxSize); err != nil {
			return err
		}
	}
	p.Required("path", body.Path != nil)
	p.When(body.Archive != nil && *body.Archive != "tar", "archive", "value", "must be tar")
	if err := p.Err(fault.InvalidArgument); err != nil {
		return err
	}
	return s.sendFile(w, r, options.Download{Path: *body.Path, Tar: body.Archive != nil, User: body.User})
}

// getFile streams a file, or a tar, which the query names.
func (s *Server) getFile(w http.ResponseWriter, r *request) error {
	query, err := r.query()
	if err != nil {
		return err
	}
	var p document.Problems
	p.Required("path", query.Has("path"))
	asTar := query.Has("archive")
	p.When(asTar && query.Get("archive") != "tar", "archive", "value", "must be tar")
	if err := p.Err(fault.InvalidArgument); err != nil {
		return err
	}
	return s.sendFile(w, r, options.Download{Path: query.Get("path"), Tar: asTar, User: query.Get("user")})
}

// sendFile streams a file of a box to the client.
func (s *Server) sendFile(w http.ResponseWriter, r *request, o options.Download) error {
	box, err := s.box(r)
	if err != nil {
		return err
	}
	file, err := box.Download(r.Context(), o)
	if err != nil {
		return err
	}
	defer file.Close()
	kind := "application/octet-stream"
	if o.Tar {
		kind = "application/x-tar"
	}
	header := w.Header()
	header.Set("Content-Type", kind)
	header.Set("Content-Disposition", disposition(file.Name))
	if file.Size >= 0 {
		header.Set("Content-Length", strconv.FormatInt(file.Size, 10))
	}
	w.WriteHeader(http.StatusOK)
	// What the box fails with is a fault. A client that has gone is told nothing.
	var cut *fault.Error
	if _, err := w.(io.ReaderFrom).ReadFrom(file.ReadCloser); errors.As(err, &cut) {
		return fault.Wrap(fault.Engine, err, "the file was cut off") // fail then breaks off the reply, too
	}
	return nil
}

// disposition returns the header that proposes the file's name to a client that
// saves it.
func disposition(name string) string {
	if d := mime.FormatMediaType("attachment", map[string]string{"filename": name}); d != "" {
		return d
	}
	return "attachment"
}
