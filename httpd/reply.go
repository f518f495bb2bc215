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

// reply is a http.ResponseWriter that counts, and that sets deadlines.
type reply struct {
	http.ResponseWriter
	status int // 0 before the head was written
	bytes  int64
	// timeout bounds how long the client may take to read the reply; 0 for no
	// bound.
	timeout time.Duration
	body    *timedBody // of the request; nil for none, and when the connection is handed over
}

// WriteHeader writes the head. From here on the client has w.timeout to read the
// reply. An informational answer of a program in a box is passed on, and is no head.
func (w *reply) WriteHeader(status int) {
	inform := status < http.StatusOK && status != http.StatusSwitchingProtocols
	if w.status == 0 && !inform {
		w.status = status
		var deadline time.Time
		if w.timeout > 0 {
			deadline = time.Now().Add(w.timeout)
		}
		_ = w.control().SetWriteDeadline(deadline) // not every connection has any
		if w.body != nil {
			w.body.giveUp(w.ResponseWriter, status)
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

// ReadFrom lets net/http move src, which hands the connection itself to a src that
// can write to it without a copy.
func (w *reply) ReadFrom(src io.Reader) (int64, error) {
	w.head()
	var n int64
	var err error
	if direct, ok := w.ResponseWriter.(io.ReaderFrom); ok {
		n, err = direct.ReadFrom(src)
	} else { // HTTP/2
		n, err = io.Copy(w.ResponseWriter, src)
	}
	w.bytes += n
	return n, err
}

// Flush sends what was written; streams call it.
func (w *reply) Flush() {
	w.head()
	_ = w.control().Flush() // if it fails, the next Write returns the error
}

// Hijack hands the connection over, to a WebSocket.
func (w *reply) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.status, w.body = http.StatusSwitchingProtocols, nil
	return w.control().Hijack()
}

// Unwrap returns the writer below, for http.ResponseController.
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

// jsonType is shared by all replies, which saves each one an allocation.
var jsonType = []string{"application/json"}

// encode returns v as JSON. Equal values have equal JSON: maps are sorted.
func encode(v any) ([]byte, error) {
	doc, err := json.Marshal(v, json.Deterministic(true))
	return doc, fault.Wrap(fault.Internal, err, "encode the reply")
}

// writeDocument writes JSON as the whole reply. It never fails: a write that does
// means that the client has gone, and there is nobody left to tell.
func writeDocument(w http.ResponseWriter, status int, doc []byte) error {
	writePieces(w, status, jsonType, doc)
	return nil
}

// writePieces writes the whole reply, whose body is in pieces.
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
