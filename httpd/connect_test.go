package httpd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/gorilla/websocket"
	"golang.org/x/sys/unix"

	"sandbox/auth"
	"sandbox/core"
	"sandbox/core/enginetest/fake"
	"sandbox/httpd"
	"sandbox/test/members"
)

// program serves HTTP on a port of the host, which every box of the fake engine has.
func program(t *testing.T, handle http.HandlerFunc) (port int) {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server.Listener.Addr().(*net.TCPAddr).Port
}

// raw is a program that serves each connection in its own way.
func raw(t *testing.T, serve func(net.Conn)) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func TestPortRequest(t *testing.T) {
	t.Parallel()
	s := start(t)
	seen := make(chan *http.Request, 1)
	port := program(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Request-Id", "the program's")
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(append([]byte("got "), body...))
		seen <- r
	})
	id := s.create(`{"name":"web"}`)
	base := fmt.Sprintf("/v1/boxes/web/ports/%d", port)
	for name, send := range map[string]func(string, string, string, ...func(*http.Request)) answer{"by key": s.ask, "through the socket": s.local} {
		a := send("PROPFIND", base+"/a%2Fb//c/?x=1;y&z=%zz", "body",
			header("Cookie", "theirs=1; sandbox_session=secret;sandbox_x=2; b=3"), header("Connection", "X-Hop"), header("X-Hop", "1"),
			header("X-Forwarded-For", "192.0.2.1"), header("X-Forwarded-Prefix", "/forged"), header("X-Own", "kept"))
		members.Equal(t, name, members.Of{
			"status": {a.status, http.StatusTeapot}, "body": {a.text, "got body"}, "request id": {fmt.Sprint(a.header["X-Request-Id"]), "[the program's]"},
			"policy": {strings.HasPrefix(a.header.Get("Content-Security-Policy"), "sandbox "), true},
		})
		r := <-seen
		_, forwarded := r.Header["X-Forwarded-For"]
		members.Equal(t, name+", the program", members.Of{
			"method": {r.Method, "PROPFIND"}, "address": {r.RequestURI, "/a%2Fb//c/?x=1;y&z=%zz"}, "cookies": {r.Header.Get("Cookie"), "theirs=1; b=3"},
			"key": {r.Header.Get("Authorization"), ""}, "hop": {r.Header.Get("X-Hop"), ""}, "own": {r.Header.Get("X-Own"), "kept"},
			"prefix": {r.Header.Get("X-Forwarded-Prefix"), base}, "host": {r.Header.Get("X-Forwarded-Host"), r.Host}, "scheme": {r.Header.Get("X-Forwarded-Proto"), "http"},
			"client": {forwarded, name == "by key"}, "forged": {strings.Contains(r.Header.Get("X-Forwarded-For"), "192"), false},
		})
	}
	basic := s.local("GET", base+"/", "", header("Authorization", "Basic abc"))
	if r := <-seen; basic.status != http.StatusTeapot || r.Header.Get("Authorization") != "Basic abc" {
		t.Errorf("through the socket the program got %q", r.Header.Get("Authorization"))
	}
	noSlash := s.ask("GET", fmt.Sprintf("/v1/boxes/%s/ports/%d?a=b", id, port), "", func(*http.Request) { s.client.CheckRedirect = stay })
	if to := noSlash.header.Get("Location"); noSlash.status != 308 || to != fmt.Sprintf("/v1/boxes/%s/ports/%d/?a=b", id, port) {
		t.Errorf("without a slash: %d %q", noSlash.status, to)
	}
}

// TestPortInforms has programs answer 103 first. It is passed on, and the answer that
// counts is the one behind it, also where the program has died before.
func TestPortInforms(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(`{"name":"web"}`)
	for answer, want := range map[string]int{"HTTP/1.1 418 Teapot\r\nContent-Length: 0\r\n\r\n": http.StatusTeapot, "": http.StatusBadGateway} {
		port := raw(t, func(conn net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\nLink: </style>\r\n\r\n"+answer)
			}
		})
		var link string
		hints := func(r *http.Request) {
			trace := &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error { link = h.Get("Link"); return nil }}
			*r = *r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
		}
		a := s.ask("POST", fmt.Sprintf("/v1/boxes/web/ports/%d/", port), "body", hints)
		if a.status != want || link != "</style>" {
			t.Errorf("got %d %s, and the hint %q; want %d", a.status, a.text, link, want)
		}
	}
}

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// TestPortAnswer wants what an answer tells a browser to concern the program alone.
func TestPortAnswer(t *testing.T) {
	t.Parallel()
	s := start(t)
	port := program(t, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		for _, cookie := range []string{"a=1", "b=2; Path=/deep; Domain=example.test; Secure", "c=3; path=odd; HttpOnly", "sandbox_session=planted; Path=/ui"} {
			h.Add("Set-Cookie", cookie)
		}
		for _, name := range []string{"Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc", "Service-Worker-Allowed", "NEL"} {
			h.Set(name, "x")
		}
		h.Set("Content-Security-Policy", "default-src 'self'")
		if to := r.URL.Query().Get("to"); to != "" {
			h.Set("Location", to)
			w.WriteHeader(http.StatusFound)
		}
	})
	s.create(`{"name":"web"}`)
	s.client.CheckRedirect = stay
	base := fmt.Sprintf("/v1/boxes/web/ports/%d", port)
	a := s.ask("GET", base+"/", "")
	for _, name := range []string{"Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc", "Service-Worker-Allowed", "Nel"} {
		if got, there := a.header[name]; there {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := a.header["Content-Security-Policy"]; len(got) != 2 || got[0] != "default-src 'self'" || strings.Contains(got[1], "allow-same-origin") {
		t.Errorf("the policy is %q", got)
	}
	want := []string{"a=1; Path=" + base + "/", "b=2; Secure; Path=" + base + "/deep", "c=3; HttpOnly; Path=" + base + "/"}
	if got := a.header["Set-Cookie"]; strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("cookies %q, want %q", got, want)
	}
	host := strings.TrimPrefix(s.url, "http://")
	for to, want := range map[string]string{
		"/login?x=1%23#f": base + "/login?x=1%23#f", "http://" + host + "/a%2Fb": base + "/a%2Fb", "next": "next", "https://elsewhere.test/x": "https://elsewhere.test/x",
		"//elsewhere.test/x": "//elsewhere.test/x", "?q": "?q",
	} {
		q := strings.NewReplacer("%", "%25", "#", "%23", "?", "%3F", "&", "%26").Replace(to)
		if got := s.ask("GET", base+"/?to="+q, "").header.Get("Location"); got != want {
			t.Errorf("%q leads to %q, want %q", to, got, want)
		}
	}
}

// TestPortStream wants bytes to come while both sides still send.
func TestPortStream(t *testing.T) {
	t.Parallel()
	s := start(t)
	port := program(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			_, _ = fmt.Fprintln(w, "heard", lines.Text())
			w.(http.Flusher).Flush()
		}
	})
	s.create(`{"name":"web"}`)
	body, to := io.Pipe()
	req, err := http.NewRequest("POST", fmt.Sprintf("%s/v1/boxes/web/ports/%d/", s.url, port), body)
	must(t, err)
	bearer(s.key)(req)
	go func() { _, _ = fmt.Fprintln(to, "one") }()
	resp, err := s.client.Do(req)
	must(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for _, next := range []string{"two", "three", ""} {
		if !lines.Scan() {
			t.Fatal("the answer has ended: ", lines.Err())
		}
		t.Log(lines.Text())
		if next == "" {
			break
		}
		_, err := fmt.Fprintln(to, next)
		must(t, err)
	}
	must(t, to.Close())
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("behind the end: %q, %v", lines.Text(), lines.Err())
	}
}

// TestPortUpgrade passes a WebSocket and another protocol, whose directions end one
// after the other.
func TestPortUpgrade(t *testing.T) {
	t.Parallel()
	s := start(t)
	port := program(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "websocket" {
			conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
			if err != nil {
				return
			}
			defer conn.Close()
			kind, frame, _ := conn.ReadMessage()
			_ = conn.WriteMessage(kind, append(frame, "|heard"...))
			return
		}
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: lines\r\n\r\n")
		all, _ := io.ReadAll(buf)
		_, _ = conn.Write(append(all, "|end"...))
	})
	s.create(`{"name":"web"}`)
	path := fmt.Sprintf("/v1/boxes/web/ports/%d/", port)
	ws, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+path, http.Header{"Authorization": {"Bearer " + s.key}})
	must(t, err)
	defer ws.Close()
	must(t, ws.WriteMessage(websocket.TextMessage, []byte("hello")))
	if _, got, err := ws.ReadMessage(); string(got) != "hello|heard" {
		t.Errorf("by WebSocket: %q, %v", got, err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	must(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\nUpgrade: lines\r\n\r\n", path, s.key)
	must(t, err)
	from := bufio.NewReader(conn)
	resp, err := http.ReadResponse(from, nil)
	must(t, err)
	_, err = io.WriteString(conn, "hello")
	must(t, err)
	must(t, conn.(*net.TCPConn).CloseWrite())
	if got, err := io.ReadAll(from); err != nil || resp.StatusCode != 101 || string(got) != "hello|end" {
		t.Errorf("by another protocol: %d %q, %v", resp.StatusCode, got, err)
	}
}

// TestPortRefused asks for ports that nothing serves, or nothing that speaks HTTP, and
// in boxes that do not run.
func TestPortRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	good := program(t, func(http.ResponseWriter, *http.Request) {})
	path := func(port int) string { return fmt.Sprintf("/v1/boxes/web/ports/%d/", port) }
	s.create(`{"name":"web"}`)
	s.ask("GET", path(good), "").want(t, 200, "") // its connection is kept
	for name, c := range map[string]struct {
		path   string
		status int
		code   string
		text   string
	}{
		"nobody listens":   {path(1), 502, "port_unreachable", "nothing listens on port 1 of box"},
		"garbage":          {path(raw(t, func(c net.Conn) { _, _ = io.WriteString(c, "\x00\xffgarbage\r\n\r\n") })), 502, "upstream_error", "is not HTTP"},
		"no end of a head": {path(raw(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nA: "+strings.Repeat("x", 1<<20)) })), 502, "upstream_error", ""},
		"closes at once":   {path(raw(t, func(net.Conn) {})), 502, "upstream_error", ""},
		"port 0":           {path(0), 422, "invalid_argument", "port"},
		"port 65536":       {path(65536), 422, "invalid_argument", "port"},
		"no number":        {"/v1/boxes/web/ports/http/", 422, "invalid_argument", "port"},
		"with a sign":      {"/v1/boxes/web/ports/+80/", 422, "invalid_argument", "port"},
		"no slash, port 0": {"/v1/boxes/web/ports/0", 422, "invalid_argument", "port"},
		"unknown box":      {"/v1/boxes/none/ports/80/", 404, "box_not_found", ""},
		"unknown verb":     {"/v1/boxes/web/ports/80:nope", 404, "not_found", ""},
		"no WebSocket":     {"/v1/boxes/web/ports/80:connect", 400, "malformed", ""},
	} {
		if a := s.ask("GET", c.path, "").want(t, c.status, c.code); !strings.Contains(a.text, c.text) {
			t.Errorf("%s: %s", name, a.text)
		}
	}
	if log := s.log.String(); strings.Contains(log, `"level":"ERROR"`) || !strings.Contains(log, `"level":"WARN","msg":"request failed"`) {
		t.Errorf("a box's fault is logged as the server's: %s", log)
	}
	s.ask("POST", "/v1/boxes/web:pause", "").want(t, 200, "")
	s.ask("GET", path(good), "").want(t, 409, "invalid_state")
	s.ask("POST", "/v1/boxes/web:stop?timeout_seconds=0", "").want(t, 200, "")
	s.ask("GET", path(good), "").want(t, 409, "invalid_state")
	logs := s.newKey(auth.Request{Permissions: []string{"Keys"}})
	s.ask("GET", path(good), "", bearer(logs)).want(t, 403, "permission_denied")
	s.ask("GET", path(good), "", bearer("x")).want(t, 401, "unauthenticated")
}

// TestPortBrokenOff wants an answer that ends in the middle to end so for the client.
func TestPortBrokenOff(t *testing.T) {
	t.Parallel()
	s := start(t)
	port := raw(t, func(c net.Conn) {
		_, _ = http.ReadRequest(bufio.NewReader(c))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
	})
	s.create(`{"name":"web"}`)
	req, err := http.NewRequest("GET", fmt.Sprintf("%s/v1/boxes/web/ports/%d/", s.url, port), nil)
	must(t, err)
	bearer(s.key)(req)
	resp, err := s.client.Do(req)
	must(t, err)
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); string(got) != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q, %v", got, err)
	}
	if strings.Contains(s.log.String(), "panic") {
		t.Error("it counts as a panic")
	}
}

// TestPortBySession wants no page of a box to have the host of the console.
func TestPortBySession(t *testing.T) {
	t.Parallel()
	s := startConsole(t, func(*httpd.Config) {})
	b := s.signIn(s.key)
	port := program(t, func(http.ResponseWriter, *http.Request) { t.Error("a session has reached the program") })
	id := b.newBox()
	for _, path := range []string{"", "/", "/a"} {
		a := b.send(b.client, b.root(), "GET", fmt.Sprintf("/ui/api/v1/boxes/%s/ports/%d%s", id, port, path), "", b.session)
		a.want(t, 404, "not_found")
	}
}

// TestConnect connects to a port byte by byte.
func TestConnect(t *testing.T) {
	t.Parallel()
	s := start(t)
	port := raw(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "first|")
		all, _ := io.ReadAll(c)
		_, _ = c.Write(append(all, "|end"...))
	})
	s.create(`{"name":"web"}`)
	dial := func(port int) (*websocket.Conn, int) {
		t.Helper()
		conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(), fmt.Sprintf("ws%s/v1/boxes/web/ports/%d:connect", strings.TrimPrefix(s.url, "http"), port), http.Header{"Authorization": {"Bearer " + s.key}})
		if resp == nil {
			t.Fatal(err)
		}
		if conn != nil {
			t.Cleanup(func() { _ = conn.Close() })
		}
		return conn, resp.StatusCode
	}
	conn, _ := dial(port)
	must(t, conn.WriteMessage(websocket.BinaryMessage, []byte("hello")))
	must(t, conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"eof"}`)))
	var got strings.Builder
	for {
		kind, frame, err := conn.ReadMessage()
		if err != nil {
			if !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
				t.Error(err)
			}
			break
		}
		fmt.Fprintf(&got, "%d:%s ", kind, frame)
	}
	if text := got.String(); !strings.HasPrefix(text, "2:first|") || !strings.HasSuffix(text, `|end 1:{"type":"eof"} `) {
		t.Errorf("got %q", text)
	}
	for port, status := range map[int]int{1: 502, 0: 422, 65536: 422} {
		if _, got := dial(port); got != status {
			t.Errorf("port %d: %d", port, got)
		}
	}
	conn, _ = dial(port)
	must(t, conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"signal","signal":"INT"}`)))
	for kind, frame, err := conn.ReadMessage(); err == nil; kind, frame, err = conn.ReadMessage() {
		if kind == websocket.TextMessage && !strings.Contains(string(frame), `"invalid_argument"`) {
			t.Errorf("a signal: %s", frame)
		}
	}
}

// reached is an engine whose boxes have one program.
type reached struct {
	core.Engine
	program net.Conn
}

func (r reached) Connect(context.Context, string, int) (net.Conn, error) { return r.program, nil }

// refusing is a program that takes no byte. It answers when it was sent two pieces.
type refusing struct {
	net.Conn // nil
	sent     int
	answer   io.Reader
	may      chan struct{} // closed when it answers
	once     sync.Once
	closed   chan struct{}
	why      error // of its writes
}

func (r *refusing) Write([]byte) (int, error) {
	if r.sent++; r.sent == 2 {
		close(r.may)
	}
	return 0, r.why
}

func (r *refusing) Read(p []byte) (int, error) {
	select {
	case <-r.may:
		return r.answer.Read(p)
	case <-r.closed:
		return 0, net.ErrClosed
	}
}

func (r *refusing) CloseWrite() error { return unix.ENOTCONN }

func (r *refusing) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

// TestConnectRefused wants a client to have the answer of a program that takes no more,
// as one does that refuses a request before all of it came.
func TestConnectRefused(t *testing.T) {
	t.Parallel()
	const failed = `1:{"type":"error","code":"upstream_error",`
	for name, c := range map[string]struct {
		why, end error // what writes and the last read are told
		want     string
	}{
		"behind its end":      {unix.EPIPE, io.EOF, `2:413 1:{"type":"eof"} ` + failed},
		"a reset":             {unix.EPIPE, unix.ECONNRESET, "2:413 " + failed},
		"a reset, told twice": {unix.ECONNRESET, unix.ECONNRESET, "2:413 " + failed},
		"a reset, told once":  {unix.ECONNRESET, io.EOF, "2:413 " + failed}, // TCP's way
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &refusing{
				answer: io.MultiReader(strings.NewReader("413"), iotest.ErrReader(c.end)),
				may:    make(chan struct{}), closed: make(chan struct{}), why: c.why,
			}
			s := start(t, func(conf *httpd.Config) {
				conf.Runtime = core.New(core.Config{Engine: reached{fake.NewEngine(t), r}, Images: fake.Images{"default": {Ref: "default", ID: "sha256:1", Layers: []string{t.TempDir()}}}})
			})
			s.create(`{"name":"web"}`)
			conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/v1/boxes/web/ports/80:connect", http.Header{"Authorization": {"Bearer " + s.key}})
			must(t, err)
			defer conn.Close()
			for range 2 {
				must(t, conn.WriteMessage(websocket.BinaryMessage, []byte("more of it")))
			}
			var got strings.Builder
			for {
				kind, frame, err := conn.ReadMessage()
				if err != nil {
					break
				}
				fmt.Fprintf(&got, "%d:%s ", kind, frame)
			}
			if !strings.HasPrefix(got.String(), c.want) {
				t.Errorf("got %q, want %q …", got.String(), c.want)
			}
			<-r.closed
		})
	}
}
