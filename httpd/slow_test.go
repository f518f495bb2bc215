package httpd_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/sys/unix"

	"sandbox/httpd"
	"sandbox/test/boxes"
)

// slowOutput is far more than the client of dialSlow has room for, and less than the
// server's side of a connection takes at once.
const slowOutput = 300_000

// overTLS has the server answer on one more port, by TLS, and returns its address.
func (s *service) overTLS() string {
	s.t.Helper()
	made := httptest.NewTLSServer(nil) // for its certificate
	defer made.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: made.TLS.Certificates})
	must(s.t, err)
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(l, httpd.ByKey) }()
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		check(s.t, s.server.Close(ctx))
		check(s.t, <-served)
	})
	return l.Addr().String()
}

// dialSlow opens a WebSocket whose client has next to no room for what it has not read.
func (s *service) dialSlow(base, path string) *websocket.Conn {
	s.t.Helper()
	small := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		failed := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 4096) })
		return errors.Join(failed, err)
	}}
	d := websocket.Dialer{NetDialContext: small.DialContext, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	conn, _, err := d.DialContext(s.t.Context(), base+path, http.Header{"Authorization": {"Bearer " + s.key}})
	must(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	must(s.t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	return conn
}

// alive sends a sign of life, as clients do that read for long.
func alive(conn *websocket.Conn) {
	_ = conn.WriteControl(websocket.PongMessage, nil, time.Now().Add(time.Minute)) // the server may have closed
}

// TestSlowClient wants a client to get all frames that reads them long after the server
// has sent the last one, and shows signs of life meanwhile.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	s := start(t)
	plain, byTLS := "ws"+strings.TrimPrefix(s.url, "http"), "wss://"+s.overTLS()
	box := "/v1/boxes/" + s.create(`{}`)
	sends := raw(t, func(c net.Conn) {
		_, _ = bufio.NewReader(c).ReadString('\n')
		_, _ = io.WriteString(c, strings.Repeat("x", slowOutput))
	})
	script := fmt.Sprintf("head -c %d /dev/zero | tr '\\\\0' x", slowOutput)
	attached := func() string {
		exec, _ := s.ask("POST", box+"/exec", `{"cmd":"read go; `+script+`","stdin_open":true}`).want(t, 201, "").json["id"].(string)
		return box + "/exec/" + exec + "/attach"
	}
	for name, c := range map[string]struct {
		base, path string
		begin      func(conn *websocket.Conn, path string)
		last       string
	}{
		"attached":      {plain, attached(), typeGo, "exit"},
		"attached, TLS": {byTLS, attached(), typeGo, "exit"},
		"observer":      {plain, attached() + "?mode=observe", s.writeGo, "exit"},
		"terminal":      {plain, s.newTerminal(), typeLine(strings.ReplaceAll(script, `\\`, `\`) + "; exit\n"), "exit"},
		"a port":        {plain, fmt.Sprintf("%s/ports/%d:connect", box, sends), typeEnd, "eof"},
		"a port, TLS":   {byTLS, fmt.Sprintf("%s/ports/%d:connect", box, sends), typeEnd, "eof"},
	} {
		t.Run(name, func(t *testing.T) { s.readLate(t, s.dialSlow(c.base, c.path), c.path, c.last, c.begin) })
	}
}

func typeLine(line string) func(*websocket.Conn, string) {
	return func(conn *websocket.Conn, _ string) { _ = conn.WriteMessage(websocket.BinaryMessage, []byte(line)) }
}

func typeGo(conn *websocket.Conn, path string) { typeLine("go\n")(conn, path) }

func typeEnd(conn *websocket.Conn, path string) {
	typeGo(conn, path)
	_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"eof"}`))
}

// writeGo is typeGo for a client that may only read.
func (s *service) writeGo(_ *websocket.Conn, path string) {
	exec, _, _ := strings.Cut(path, "/attach")
	s.ask("POST", exec+":write_stdin", "go\n").want(s.t, 200, "")
}

// newTerminal returns the path of a terminal of a box that no other request is for.
func (s *service) newTerminal() string {
	return "/v1/boxes/" + s.create(`{}`) + "/attach?shell=/bin/sh"
}

// readLate begins to read when the server has logged the request, which it does at its
// end. It wants all of the output, a last text frame of that type, and a normal end.
func (s *service) readLate(t *testing.T, conn *websocket.Conn, path, last string, begin func(*websocket.Conn, string)) {
	begin(conn, path)
	logged, _, _ := strings.Cut(path, "?")
	boxes.Await(t, "the request to end", func() bool {
		alive(conn)
		return strings.Contains(s.log.String(), `"path":"`+logged+`"`)
	})
	for range 3 {
		alive(conn)
	}
	var got int
	var text struct {
		Type string `json:"type"`
	}
	for {
		kind, p, err := conn.ReadMessage()
		switch {
		case err == nil && kind == websocket.TextMessage:
			must(t, json.Unmarshal(p, &text))
			continue
		case err == nil:
			got += strings.Count(string(p), "x")
			continue
		case !websocket.IsCloseError(err, websocket.CloseNormalClosure):
			t.Errorf("the connection ended with: %v", err)
		}
		break
	}
	if got < slowOutput || text.Type != last {
		t.Errorf("%d bytes of output, at last the frame %q; want %d and %q", got, text.Type, slowOutput, last)
	}
}

// TestEndWithClient ends a server while a client that has read all keeps its side open.
func TestEndWithClient(t *testing.T) {
	t.Parallel()
	s := start(t)
	box := "/v1/boxes/" + s.create(`{}`)
	exec, _ := s.ask("POST", box+"/exec", `{"cmd":"true"}`).want(t, 201, "").json["id"].(string)
	c := s.attach(box+"/exec/"+exec, "")
	if c.rest(); c.last["type"] != "exit" {
		t.Errorf("at last %v", c.last)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // a client may be quiet for longer
	defer cancel()
	check(t, s.server.Close(ctx))
	if ctx.Err() != nil {
		t.Error("the server has waited for the client")
	}
}
