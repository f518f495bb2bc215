// Package linger lets the answer of a request arrive whose body was not read to its
// end, as an upload that is refused. Alone, net/http reads 256 KiB more at most, sends
// the answer and closes the connection. A client that writes its whole request before
// it reads finds the connection closed then, and never sees the answer.
package linger

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Quiet bounds how long a client that has its answer may send nothing of the rest of
// its body.
const Quiet = 5 * time.Second

// Answer makes net/http send a reply before the rest of the request's body has come,
// and reports whether it will. Call it before the head of the reply is written, and
// [Drop] when all of the reply is. It returns false for a reply without a
// Content-Length, whose end is sent only when the handler has returned, and for
// another version of HTTP than 1: the clients of HTTP/2 are told that the rest is not
// wanted.
func Answer(w http.ResponseWriter, version int) bool {
	if version != 1 || w.Header().Get("Content-Length") == "" {
		return false
	}
	return http.NewResponseController(w).EnableFullDuplex() == nil
}

// Drop sends what was written of the reply, and reads the rest of the body, to drop
// it. If the client sends nothing for as long as quiet, or goes on for longer than
// most, Drop closes the connection, because nobody knows where the next request would
// begin. No handler may write or hijack the connection any more.
func Drop(control *http.ResponseController, body io.Reader, quiet, most time.Duration) {
	err := control.Flush()
	piece := make([]byte, 32<<10)
	for end := time.Now().Add(most); err == nil; {
		deadline := time.Now().Add(quiet)
		if deadline.After(end) {
			deadline = end
		}
		_ = control.SetReadDeadline(deadline) // each connection of HTTP/1.1 has one
		_, err = body.Read(piece)
	}
	if errors.Is(err, io.EOF) {
		_ = control.SetReadDeadline(time.Time{}) // it would count for the next request
		return
	}
	if conn, _, err := control.Hijack(); err == nil {
		_ = conn.Close()
	}
}
