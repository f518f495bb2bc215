package e2b

import (
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strconv"
	"strings"

	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// readFile sends a file of a box.
func (s *Server) readFile(w http.ResponseWriter, r *http.Request, box *core.Box) error {
	user, err := s.account(r.Context(), box, named(r.Header, r.URL.Query().Get("username")))
	if err != nil {
		return err
	}
	file, err := box.Download(r.Context(), options.Download{Path: user.under(r.URL.Query().Get("path"))})
	if err != nil {
		return err
	}
	defer file.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("inline", map[string]string{"filename": file.Name}))
	w.Header().Set("Content-Length", strconv.FormatInt(file.Size, 10))
	w.WriteHeader(http.StatusOK)
	_, _ = io.Copy(w, file) // a reply that is shorter than its Content-Length tells the client enough
	return nil
}

// writtenFile is what is told of a file that was written.
type writtenFile struct {
	Path string `json:"path"`
	Name string `json:"name"`
	Type string `json:"type"`
}

// writeFiles writes the body, or each file of a form, to a box.
func (s *Server) writeFiles(w http.ResponseWriter, r *http.Request, box *core.Box) error {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Metadata-") {
			return absence("files have no metadata of E2B's")
		}
	}
	user, err := s.account(r.Context(), box, named(r.Header, r.URL.Query().Get("username")))
	if err != nil {
		return err
	}
	in, err := content(r)
	if err != nil {
		return err
	}
	files := writing{r: r, box: box, user: user, written: []writtenFile{}}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		err = files.form(in)
	} else {
		err = files.file(r.URL.Query().Get("path"), in)
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, files.written)
}

// content returns the body, unpacked where it is gzipped. Errors: Malformed,
// Unsupported.
func content(r *http.Request) (io.Reader, error) {
	switch r.Header.Get("Content-Encoding") {
	case "", "identity":
		return r.Body, nil
	case "gzip":
		in, err := gzip.NewReader(r.Body)
		return in, fault.Wrap(fault.Malformed, err, "the body is not gzip")
	}
	return nil, absence("a body may be gzipped and in no other encoding")
}

// writing writes the files of one request.
type writing struct {
	r       *http.Request
	box     *core.Box
	user    account
	written []writtenFile
}

// form writes the files of a form. The name of a part is its path, unless the query
// has one, which is for the only file.
func (f *writing) form(in io.Reader) error {
	_, params, err := mime.ParseMediaType(f.r.Header.Get("Content-Type"))
	if err != nil || params["boundary"] == "" {
		return fault.New(fault.Malformed, "the form names no boundary")
	}
	parts := multipart.NewReader(in, params["boundary"])
	for {
		part, err := parts.NextPart()
		if err == io.EOF { // unwrapped: a wrapped one means that a part broke off
			return f.whole()
		}
		if err != nil {
			return errBody(err)
		}
		if part.FormName() != "file" {
			continue
		}
		name := f.r.URL.Query().Get("path")
		if name == "" {
			name = fileName(part)
		} else if len(f.written) > 0 {
			return fault.New(fault.InvalidArgument, "the path of the query is for one file, and the form has more")
		}
		if err := f.file(name, part); err != nil {
			return err
		}
	}
}

// whole checks a form that was read to its end. Errors: Malformed.
func (f *writing) whole() error {
	if len(f.written) == 0 {
		return fault.New(fault.Malformed, "the body has no field named file")
	}
	return nil
}

// fileName returns the whole name of a part, which package multipart would cut to its
// last element.
func fileName(part *multipart.Part) string {
	_, params, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	return params["filename"]
}

// file writes one file.
func (f *writing) file(name string, in io.Reader) error {
	if name == "" {
		return fault.New(fault.InvalidArgument, "the request names no path")
	}
	made, err := f.box.Upload(f.r.Context(), core.Upload{Dest: f.user.under(name), Owner: f.user.name}, body{in})
	if err != nil {
		return err
	}
	f.written = append(f.written, writtenFile{Path: made.Dest, Name: path.Base(made.Dest), Type: "file"})
	return nil
}

// body is a body that is a file. It classifies the failures of Read.
type body struct{ io.Reader }

func (b body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errBody(err)
	}
	return n, err
}
