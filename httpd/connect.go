package httpd

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/httpd/proxy"
)

// anyVerb is the Method of a route that takes requests of all methods.
const anyVerb = "*"

// port returns the port that the path names. Errors: InvalidArgument.
func (r *request) port() (int, error) {
	text := r.param("port")
	port, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(port) != text {
		return 0, document.Invalid("port", "range", "must be a number from 1 to 65535")
	}
	return port, options.CheckPort(port)
}

// toPort passes a request on to a program in a box.
func (s *Server) toPort(w http.ResponseWriter, r *request) error {
	port, err := r.port()
	if err != nil {
		return err
	}
	rec, err := s.Runtime.Find(r.Context(), r.param("id"))
	if err != nil {
		return err
	}
	return s.pass(w, r, rec, proxy.Target{
		Port: port, Path: "/" + r.rest, Prefix: strings.TrimSuffix(r.URL.EscapedPath(), "/"+r.rest), Query: r.URL.RawQuery, Key: r.by == ByKey,
	})
}

// pass passes a request on to a program in a box that runs.
func (s *Server) pass(w http.ResponseWriter, r *request, rec core.Record, to proxy.Target) error {
	if rec.Status != api.Running { // else a connection that is kept would lead to it
		if _, err := s.Runtime.At(rec.ID).Awake(r.Context()); err != nil {
			return err
		}
	}
	ctx, cancel := s.streaming(r)
	defer cancel()
	to.Box = rec.ID
	err := s.proxy.Serve(w, r.WithContext(ctx), to)
	if fault.Is(err, fault.Canceled) && r.Context().Err() != nil { // nobody is left to tell
		return nil
	}
	return s.brokenOff(err)
}

// toRoot sends a client to the path with a slash at its end, which links of the
// program's pages go from.
func (s *Server) toRoot(w http.ResponseWriter, r *request) error {
	if _, err := r.port(); err != nil {
		return err
	}
	r.addSlash(w)
	return nil
}

// addSlash sends a client to its path with a slash at the end.
func (r *request) addSlash(w http.ResponseWriter) {
	to := r.URL.EscapedPath() + "/"
	if r.URL.RawQuery != "" {
		to += "?" + r.URL.RawQuery
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusPermanentRedirect)
}

// connectPort connects a client to a port of a box, byte by byte, over a WebSocket.
func (s *Server) connectPort(w http.ResponseWriter, r *request) error {
	port, err := r.port()
	if err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	if err := r.mustUpgrade(); err != nil {
		return err
	}
	ctx, cancel := s.streaming(r)
	defer cancel()
	conn, err := box.Connect(ctx, port)
	if err != nil {
		return s.brokenOff(err)
	}
	defer conn.Close()
	c, err := s.upgrade(w, r)
	if err != nil {
		return err
	}
	t := tunnel{Conn: conn, ended: make(chan struct{}), gone: make(chan error, 1)}
	_ = c.serve(ctx, t.actions(), func(ctx context.Context) error { return t.show(ctx, c) }) // the client was told
	_ = conn.Close()                                                                         // ends a write that blocks
	c.ends.Wait()
	return nil
}

// tunnel is a connection to a port of a box, for one client.
type tunnel struct {
	net.Conn
	ended chan struct{} // closed when the client sends nothing more
	gone  chan error    // holds why the program takes nothing more
}

// actions returns what the client's frames do.
func (t tunnel) actions() actions {
	none := func() error {
		return fault.New(fault.InvalidArgument, "a connection takes bytes, and eof behind the last one")
	}
	return actions{
		input: func(p []byte) error {
			if _, err := t.Write(p); err != nil {
				t.refuses(err)
			}
			return nil
		},
		eof: func() error {
			select {
			case <-t.ended:
				return none()
			default:
			}
			close(t.ended)
			_ = t.Conn.(interface{ CloseWrite() error }).CloseWrite() //nolint:forcetypeassert // see core.Box.Connect; it fails if the program has gone
			return nil
		},
		resize: func(int, int) error { return none() },
		signal: func(string) error { return none() },
	}
}

// refuses notes why the program takes nothing more. What the client sends from now on is
// dropped; what the program has answered is still to be shown.
func (t tunnel) refuses(err error) {
	select {
	case t.gone <- err:
	default:
	}
}

// ending is the frame that says that one side sends nothing more.
type ending struct {
	Type string `json:"type"`
}

// show sends what comes from the program, and its end, and then waits for the client's
// end.
func (t tunnel) show(ctx context.Context, c *socket) error {
	defer context.AfterFunc(ctx, func() { _ = t.Close() })()
	if err := t.pass(c); err != nil {
		return err
	}
	if err := c.tell(ending{"eof"}); err != nil {
		return err
	}
	select {
	case <-t.ended:
		return nil
	case err := <-t.gone:
		return fault.Wrap(fault.Upstream, err, "the program has closed the connection")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pass sends what comes from the program up to its end.
func (t tunnel) pass(c *socket) error {
	buf := pieces.Get().(*[]byte)
	defer pieces.Put(buf)
	for {
		n, err := t.Read(*buf)
		if n > 0 && c.write((*buf)[:n]) != nil {
			return errHungUp
		}
		if errors.Is(err, io.EOF) {
			err = t.reset()
			if err == nil {
				return nil
			}
		}
		if err != nil {
			return fault.Wrap(fault.Upstream, err, "the program has broken the connection off")
		}
	}
}

// reset returns why the connection was broken off, if a write was told so: TCP tells it
// once, and a read that comes later finds what looks like the end.
func (t tunnel) reset() error {
	select {
	case err := <-t.gone:
		if errors.Is(err, unix.ECONNRESET) {
			return err
		}
		t.refuses(err)
	default:
	}
	return nil
}
