package httpd

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"sandbox/core/fault"
)

// reply is a http.ResponseWriter that knows what was answered.
type reply struct {
	http.ResponseWriter
	status int // 0 before the head was written
	bytes  int64
	// timeout is what the client has to take the reply; 0 for as long as
	// it likes.
	timeout time.Duration
	body    *timedBody // of the request, or nil
}

// WriteHeader writes the head. From here on the client has a bounded time to
// take a reply that is no stream.
func (w *reply) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		var deadline time.Time
		if w.timeout > 0 {
			deadline = time.Now().Add(w.timeout)
		}
		_ = w.control().SetWriteDeadline(deadline) // not every connection has any
		if w.body != nil {
			w.body.giveUp()
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *reply) Write(p []byte) (int, error) {
	w.head()
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

func (w *reply) head() {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
}

// ReadFrom keeps io.Copy's way of moving a file without copying it.
func (w *reply) ReadFrom(src io.Reader) (int64, error) {
	w.head()
	n, err := io.Copy(w.ResponseWriter, src)
	w.bytes += n
	return n, err
}

// Flush sends what was written; streams call it.
func (w *reply) Flush() {
	w.head()
	_ = w.control().Flush() // the next Write says what is wrong
}

// Hijack hands the connection to a WebSocket.
func (w *reply) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.status = http.StatusSwitchingProtocols
	return w.control().Hijack()
}

// Unwrap is for http.ResponseController.
func (w *reply) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *reply) control() *http.ResponseController {
	return http.NewResponseController(w.ResponseWriter)
}

// writeJSON writes v as the whole reply.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	doc, err := encode(v)
	if err != nil {
		return err
	}
	return writeDocument(w, status, doc)
}

// jsonType is shared by all replies: a slice a reply would be garbage.
var jsonType = []string{"application/json"}

// encode returns v as JSON, the same for the same v.
func encode(v any) ([]byte, error) {
	doc, err := json.Marshal(v, json.Deterministic(true))
	return doc, fault.Wrap(fault.Internal, err, "encode the reply")
}

// writeDocument writes JSON as the whole reply. A failure is the client's, who
// has gone: there is nobody to tell.
func writeDocument(w http.ResponseWriter, status int, doc []byte) error {
	writePieces(w, status, jsonType, doc)
	return nil
}

// writePieces writes a whole reply that is in pieces.
func writePieces(w http.ResponseWriter, status int, contentType []string, pieces ...[]byte) {
	size := 0
	for _, piece := range pieces {
		size += len(piece)
	}
	header := w.Header()
	header["Content-Type"] = contentType
	header["Content-Length"] = []string{strconv.Itoa(size)}
	w.WriteHeader(status)
	for _, piece := range pieces {
		_, _ = w.Write(piece)
	}
}
