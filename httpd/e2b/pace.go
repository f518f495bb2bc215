package e2b

import (
	"errors"
	"io"
	"net/http"
	"time"

	"sandbox/httpd/linger"
)

// lingering bounds how long net/http waits for the rest of a body that nobody has
// read, where it waits before it sends the reply.
const lingering = time.Second

// paced bounds how long a client may take to send a piece of its body, and to read a
// piece of the reply. A stream may be quiet for as long as it likes.
func paced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		body := &pacedBody{Reader: r.Body, control: control, quiet: r.URL.Path == streamInput, whole: r.Body == http.NoBody}
		r.Body = body
		next.ServeHTTP(&pacedReply{ResponseWriter: w, control: control, body: body, http: r.ProtoMajor}, r)
		_ = control.SetWriteDeadline(time.Now().Add(patience)) // net/http still has the end of the reply to send
		if body.early {
			linger.Drop(w, body.Reader, linger.Quiet, patience)
			return
		}
		body.giveUp()
	})
}

// pacedBody is a body with a deadline for each piece, unless it is one that may be quiet.
type pacedBody struct {
	io.Reader
	control *http.ResponseController
	quiet   bool
	whole   bool // it was read to its end
	early   bool // the reply does not wait for the rest
}

// Close does nothing: net/http closes what is below, and the rest may have to be
// dropped before.
func (b *pacedBody) Close() error { return nil }

func (b *pacedBody) Read(p []byte) (int, error) {
	if !b.quiet {
		_ = b.control.SetReadDeadline(time.Now().Add(patience)) // not every connection has any
		// The deadline would end the request while it is answered.
		defer func() { _ = b.control.SetReadDeadline(time.Time{}) }()
	}
	n, err := b.Reader.Read(p)
	b.whole = b.whole || errors.Is(err, io.EOF)
	return n, err
}

// giveUp bounds the wait for what nobody has read.
func (b *pacedBody) giveUp() {
	if !b.whole && !b.quiet && !b.early {
		_ = b.control.SetReadDeadline(time.Now().Add(lingering))
	}
}

// pacedReply is a reply with a deadline for each piece.
type pacedReply struct {
	http.ResponseWriter
	control *http.ResponseController
	body    *pacedBody
	http    int // the version of HTTP
	begun   bool
}

// begin is called before the reply begins. It does not wait for a body that nobody has
// read, if it is short; the reply to a stream of the client's always is.
func (w *pacedReply) begin(status int) {
	if !w.begun && !w.body.whole {
		w.body.early = linger.Answer(w.ResponseWriter, w.http, w.body.quiet || status >= http.StatusBadRequest)
	}
	w.begun = true
}

// WriteHeader writes the head.
func (w *pacedReply) WriteHeader(status int) {
	w.begin(status)
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a piece.
func (w *pacedReply) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	defer w.bound()()
	return w.ResponseWriter.Write(p)
}

// Flush sends what was written; streams call it.
func (w *pacedReply) Flush() {
	w.begin(http.StatusOK)
	defer w.bound()()
	_ = w.control.Flush() // if it fails, the next Write returns the error
}

// bound sets the deadlines of a write and returns what takes them away. The one for
// reading counts where net/http reads the rest of the body before it sends.
func (w *pacedReply) bound() func() {
	_ = w.control.SetWriteDeadline(time.Now().Add(patience))
	w.body.giveUp()
	return func() {
		_ = w.control.SetWriteDeadline(time.Time{})
		_ = w.control.SetReadDeadline(time.Time{})
	}
}

// Unwrap returns the writer below, for http.ResponseController.
func (w *pacedReply) Unwrap() http.ResponseWriter { return w.ResponseWriter }
