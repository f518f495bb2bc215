package httpd

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/julienschmidt/httprouter"

	"sandbox/auth"
	"sandbox/console"
	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/httpd/share"
)

// request is one request on its way to its handler.
type request struct {
	*http.Request
	id        string // a UUID, ours or the client's
	by        Entrance
	path      string // escaped, as the tables of routes have it
	route     *Route // nil if there is none
	allowed   []string
	missing   error // the failure to answer with if route is nil
	misplaced bool  // see Server.lookUp
	params    httprouter.Params
	rest      string           // the last parameter of a route with Rest, still escaped
	grant     share.Grant      // the box and port that the host names, of a route by host
	principal *auth.Principal  // nil until authorized has found it
	session   *console.Session // nil unless authorized has found one
	left      func()           // ends the part in the session; nil without one
	socket    *socket          // what the connection was upgraded to; nil while it is not
	// observability is set for paths of the log queries: their failures have
	// another body.
	observability bool
}

// document reads the whole JSON body, of at most most bytes. It returns nil if
// there is no body. Errors: Malformed, TooLarge, Timeout.
func (r *request) document(w http.ResponseWriter, most int64) ([]byte, error) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	if err := r.mustBeJSON(); err != nil {
		return nil, err
	}
	if r.ContentLength > most {
		return nil, errTooLarge(most)
	}
	doc, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return nil, errTooLarge(most)
	}
	if err != nil {
		return nil, errBody(err)
	}
	return doc, nil
}

// members reads the JSON body into v, and notes what is wrong with it in p. No
// body counts as a document without members.
func (r *request) members(w http.ResponseWriter, p *document.Problems, v any) error {
	doc, err := r.document(w, maxBody)
	if err != nil || doc == nil {
		return err
	}
	return p.Read(doc, v, document.MaxSize)
}

func errTooLarge(most int64) error {
	return fault.New(fault.TooLarge, "the body is larger than the %d bytes allowed", most)
}

// errBody classifies the failure of reading a body, which is the client's fault.
func errBody(err error) error {
	if timeout := interface{ Timeout() bool }(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return fault.New(fault.Timeout, "the body did not arrive in time")
	}
	return fault.Wrap(fault.Malformed, err, "the body can't be read")
}

// mustBeJSON refuses a body whose Content-Type is another one. Errors: Malformed.
func (r *request) mustBeJSON() error {
	header := r.Header.Get("Content-Type")
	if header == "" || header == "application/json" {
		return nil
	}
	kind, _, err := mime.ParseMediaType(header)
	if err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json")) {
		return nil
	}
	return fault.New(fault.Malformed, "the Content-Type is %q and must be application/json", brief(header))
}

// secret returns the key that a request carries, or "".
func (r *request) secret() string {
	values := r.Header["Authorization"]
	if len(values) == 0 && r.route != nil && r.route.WebSocket {
		return r.offered()
	}
	if len(values) != 1 {
		return ""
	}
	scheme, secret, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return secret
}

// bearerProtocol is the beginning of the subprotocol that carries a browser's key.
const bearerProtocol = "bearer."

// offered returns the key among the subprotocols that a WebSocket client offers,
// or "".
func (r *request) offered() string {
	for _, header := range r.Header["Sec-Websocket-Protocol"] {
		for protocol := range strings.SplitSeq(header, ",") {
			if secret, ok := strings.CutPrefix(strings.TrimSpace(protocol), bearerProtocol); ok {
				return secret
			}
		}
	}
	return ""
}
