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
// [Drop] when all of the reply is. Short is for a reply that ends at once, as a failure
// does. Answer returns false for others without a Content-Length: they may be streams,
// and while its body is unread nobody sees a client go. It does so for another version
// of HTTP than 1, too: the clients of HTTP/2 are told that the rest is not wanted.
func Answer(w http.ResponseWriter, version int, short bool) bool {
	switch {
	case version != 1:
		return false
	case w.Header().Get("Content-Length") != "":
		return http.NewResponseController(w).EnableFullDuplex() == nil
	case short:
		w.Header().Set("Connection", "close") // with it net/http reads nothing before it sends
	}
	return short
}

// Drop sends what was written of the reply, and reads the rest of the body, to drop
// it. If the client sends nothing for as long as quiet, or goes on for longer than
// most, the connection is closed, because nobody knows where the next request would
// begin. No handler may write or hijack the connection any more.
func Drop(w http.ResponseWriter, body io.Reader, quiet, most time.Duration) {
	control := http.NewResponseController(w)
	err := control.Flush()
	piece := make([]byte, 32<<10)
	for end := time.Now().Add(most); err == nil; {
		deadline := time.Now().Add(quiet)
		if deadline.After(end) {
			deadline = end
		}
		_ = control.SetReadDeadline(deadline) // each connection of HTTP/1 has one
		_, err = body.Read(piece)
	}
	if errors.Is(err, io.EOF) {
		_ = control.SetReadDeadline(time.Time{}) // it would count for the next request
		return
	}
	if w.Header().Get("Connection") == "close" { // then net/http closes it, behind the end of the reply
		return
	}
	if conn, _, err := control.Hijack(); err == nil {
		_ = conn.Close()
	}
}
