package httpd

import (
	"bufio"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/document"
	"sandbox/core/fault"
)

// maxField bounds a field of the form other than file, in bytes.
const maxField = 64 << 10

// uploaded is the reply to an upload.
type uploaded struct {
	OK bool `json:"ok"`
	api.Uploaded
}

// upload puts a file into a box. If the field dest comes first, the file streams
// into the box, and mode may come behind it. A file that comes before dest is kept
// on the disk until its destination is known.
func (s *Server) upload(w http.ResponseWriter, r *request) error {
	box, err := s.running(r)
	if err != nil {
		return err
	}
	r.Body = bufferedBody{bufio.NewReaderSize(r.Body, piece), r.Body}
	parts, err := r.MultipartReader()
	if err != nil {
		return fault.Wrap(fault.Malformed, err, "an upload is multipart/form-data with the fields file and dest")
	}
	f := form{parts: parts, held: s.Held}
	defer f.close()
	if err := f.read(); err != nil {
		return err
	}
	f.to.LateMode = func() *int { return f.to.Mode }
	made, err := box.Upload(r.Context(), f.to, f.content)
	if err != nil {
		return f.explain(err)
	}
	return writeJSON(w, http.StatusOK, uploaded{true, made})
}

// running returns the box that the path names, which must run: a client should not
// send a whole file in vain. Errors: Ambiguous, and those of [core.Box.Awake].
func (s *Server) running(r *request) (*core.Box, error) {
	box, err := s.box(r)
	if err != nil {
		return nil, err
	}
	_, err = box.Awake(r.Context())
	return box, err
}

// putFile streams the body into a file of a box, which the query names, or the files of
// a tar into a directory.
func (s *Server) putFile(w http.ResponseWriter, r *request) error {
	query, err := r.query()
	if err != nil {
		return err
	}
	var p document.Problems
	p.Required("path", query.Has("path"))
	to := core.Upload{Dest: query.Get("path"), User: query.Get("user")}
	to.Tar = query.Has("archive")
	p.When(to.Tar && query.Get("archive") != "tar", "archive", "value", "must be tar")
	if query.Has("mode") {
		to.Mode, err = octal(query.Get("mode"))
		p.When(err != nil, "mode", "value", notOctal)
	}
	if err := p.Err(fault.InvalidArgument); err != nil {
		return err
	}
	box, err := s.running(r)
	if err != nil {
		return err
	}
	made, err := box.Upload(r.Context(), to, rawBody{r.Body})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, uploaded{true, made})
}

// rawBody is a body that is a file. It classifies the failures of Read.
type rawBody struct{ io.Reader }

func (b rawBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errBody(err)
	}
	return n, err
}

// notOctal is what is wrong with a mode that is no octal number.
const notOctal = "must be octal permission bits, such as 755"

// octal reads permission bits.
func octal(s string) (*int, error) {
	mode, err := strconv.ParseUint(s, 8, 12)
	bits := int(mode)
	return &bits, err
}

// bufferedBody reads the body in large pieces, although package multipart asks for
// small ones.
type bufferedBody struct {
	io.Reader
	io.Closer
}

// form reads the fields of an upload.
type form struct {
	parts   *multipart.Reader
	held    string // directory for a file that comes before dest
	to      core.Upload
	content io.Reader // nil until the file has come
	waits   *os.File  // the file that came before dest
	seen    map[string]bool
	failed  error // of the form, found while the file was streamed
}

// read reads fields until the file can be streamed, or to the end of the form.
func (f *form) read() error {
	for {
		part, err := f.next()
		if errors.Is(err, io.EOF) {
			return f.whole()
		}
		if err != nil {
			return err
		}
		if part.FormName() != "file" {
			if err := f.field(part); err != nil {
				return err
			}
			continue
		}
		if name := part.FileName(); name != "" { // Base would turn "" into "."
			f.to.Name = path.Base(name)
		}
		if f.seen["dest"] {
			f.content = &lastPart{form: f, part: part}
			return nil
		}
		if err := f.hold(part); err != nil {
			return err
		}
	}
}

// next returns the next field. Errors: io.EOF at the end of the form, Malformed
// (also for a field that comes twice), Timeout.
func (f *form) next() (*multipart.Part, error) {
	part, err := f.parts.NextPart()
	if err == io.EOF { // unwrapped: a wrapped one means that a part broke off
		return nil, err
	}
	if err != nil {
		return nil, errForm(err)
	}
	name := part.FormName()
	if f.seen[name] {
		return nil, document.Malformed(name, "twice", "must come once")
	}
	if f.seen == nil {
		f.seen = map[string]bool{}
	}
	f.seen[name] = true
	return part, nil
}

// field reads a field other than file.
func (f *form) field(part *multipart.Part) error {
	name := part.FormName()
	if name != "dest" && name != "mode" && name != "archive" && name != "user" {
		return document.Malformed(brief(name), "unknown", "is not a field of an upload, which has file, dest, mode, archive and user")
	}
	b, err := io.ReadAll(io.LimitReader(part, maxField+1))
	if err != nil {
		return errForm(err)
	}
	if len(b) > maxField {
		return fault.New(fault.TooLarge, "the field %s is larger than the %d bytes allowed", name, maxField)
	}
	switch name {
	case "dest":
		f.to.Dest = string(b)
		return nil
	case "user":
		f.to.User = string(b)
		return nil
	case "archive":
		if f.to.Tar = string(b) == "tar"; !f.to.Tar {
			return document.Invalid("archive", "value", "must be tar")
		}
		return nil
	}
	mode, err := octal(string(b))
	if err != nil {
		return document.Invalid("mode", "value", notOctal)
	}
	f.to.Mode = mode
	return nil
}

// hold stores a file whose destination is not known yet in a file without a name,
// which disappears with the request, or with this process.
func (f *form) hold(part io.Reader) error {
	fd, err := unix.Open(f.held, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fault.Disk(err, "buffer an upload")
	}
	f.waits = os.NewFile(uintptr(fd), "upload")
	into := &diskWriter{f: f.waits}
	if _, err := io.Copy(into, part); err != nil {
		if into.err != nil {
			return fault.Disk(into.err, "buffer an upload: send dest before file, and no buffer is needed")
		}
		return errForm(err)
	}
	_, err = f.waits.Seek(0, io.SeekStart)
	f.content = f.waits
	return fault.Disk(err, "buffer an upload")
}

// diskWriter remembers the disk's failure, to tell it from a client's.
type diskWriter struct {
	f   *os.File
	err error
}

func (d *diskWriter) Write(p []byte) (int, error) {
	n, err := d.f.Write(p)
	d.err = err
	return n, err
}

// whole checks a form that has been read to its end. Errors: Malformed.
func (f *form) whole() error {
	var p document.Problems
	for _, name := range []string{"file", "dest"} {
		p.Required(name, f.seen[name])
	}
	return p.Err(fault.Malformed)
}

func (f *form) close() {
	if f.waits != nil {
		_ = f.waits.Close()
	}
}

// explain returns the form's own failure, if it had one, in place of the failed
// upload that came of it.
func (f *form) explain(err error) error {
	if f.failed != nil {
		return f.failed
	}
	return err
}

// lastPart is a file that streams. Only mode may come behind it: its reader checks
// that the form ends with it, and fails if not, before the file gets its name in
// the box.
type lastPart struct {
	form *form
	part io.Reader
}

func (l *lastPart) Read(p []byte) (int, error) {
	n, err := l.part.Read(p)
	switch {
	case err == nil:
		return n, nil
	case err != io.EOF:
		l.form.failed = errForm(err)
	default:
		l.form.failed = l.form.end()
	}
	if l.form.failed != nil {
		return n, l.form.failed
	}
	return n, io.EOF
}

// end reads what comes after a file that streams, which can be mode alone. Errors:
// Malformed, InvalidArgument, Timeout.
func (f *form) end() error {
	for {
		part, err := f.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if part.FormName() != "mode" {
			return document.Malformed(brief(part.FormName()), "order", "must come before file, or dest must come after it")
		}
		if err := f.field(part); err != nil {
			return err
		}
	}
}

// errForm classifies the failure of reading a form, which is the client's fault.
func errForm(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fault.New(fault.Malformed, "the form ends too early")
	}
	return errBody(err)
}
