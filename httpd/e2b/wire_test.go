package e2b

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"sandbox/api"
	"sandbox/httpd/e2b/protocol"
)

func text(s string) io.Reader { return strings.NewReader(s) }

// TestEnvelopes makes one call and one stream in each form that a client may choose.
func TestEnvelopes(t *testing.T) {
	t.Parallel()
	s := serve(t)
	forms := map[string][]connect.ClientOption{
		"protobuf": nil, "JSON": {connect.WithProtoJSON()}, "gRPC": {connect.WithGRPC()}, "gRPC-Web": {connect.WithGRPCWeb()},
	}
	for _, http2 := range []bool{false, true} {
		for name, form := range forms {
			if name == "gRPC" && !http2 { // it needs trailers
				continue
			}
			t.Run(fmt.Sprintf("%s, HTTP/2 %v", name, http2), func(t *testing.T) {
				t.Parallel()
				form := append(form, connect.WithInterceptors(token(s, s.box)))
				stat := connect.NewClient[protocol.StatRequest, protocol.StatResponse](client(t, http2), s.url+"/filesystem.Filesystem/Stat", form...)
				found, err := stat.CallUnary(t.Context(), connect.NewRequest(&protocol.StatRequest{Path: "a"}))
				if err != nil {
					t.Fatal(err)
				}
				if e := found.Msg.GetEntry(); e.GetPath() != theFile || e.GetSize() != 1<<40 || e.GetPermissions() != "-rw-r-----" {
					t.Errorf("got %v", e)
				}
				_, err = stat.CallUnary(t.Context(), connect.NewRequest(&protocol.StatRequest{Path: "/b"}))
				wantCode(t, err, connect.CodeNotFound)
				start := connect.NewClient[protocol.StartRequest, protocol.StartResponse](client(t, http2), s.url+"/process.Process/Start", form...)
				stream, err := start.CallServerStream(t.Context(), connect.NewRequest(&protocol.StartRequest{Process: &protocol.ProcessConfig{Cmd: "true"}}))
				if err == nil {
					if stream.Receive() {
						t.Errorf("a box that starts nothing has sent %v", stream.Msg())
					}
					err = stream.Err()
					_ = stream.Close()
				}
				wantCode(t, err, connect.CodeUnavailable)
			})
		}
	}
}

func wantCode(t *testing.T, err error, want connect.Code) {
	t.Helper()
	if got := connect.CodeOf(err); err == nil || got != want {
		t.Errorf("got %v, want %v", err, want)
	}
}

// entrant sends the headers that open a box.
type entrant struct {
	box, token string
}

func token(s service, box string) entrant { return entrant{box, s.token("access", box)} }

func (e entrant) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, q connect.AnyRequest) (connect.AnyResponse, error) {
		e.enter(q.Header())
		return next(ctx, q)
	}
}

func (e entrant) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		c := next(ctx, spec)
		e.enter(c.RequestHeader())
		return c
	}
}

func (e entrant) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

func (e entrant) enter(h http.Header) {
	h.Set(boxHeader, e.box)
	h.Set(accessHeader, e.token)
}

// TestRefusedCalls wants every wrong token to be refused before anything else.
func TestRefusedCalls(t *testing.T) {
	t.Parallel()
	s := serve(t)
	other := "box_" + strings.Repeat("a", 20)
	for name, c := range map[string]struct {
		with entrant
		want connect.Code
	}{
		"none":          {entrant{}, connect.CodeUnauthenticated},
		"no token":      {entrant{box: s.box}, connect.CodeUnauthenticated},
		"no id":         {entrant{box: "../" + s.box, token: s.token("access", s.box)}, connect.CodeUnauthenticated},
		"another's":     {entrant{s.box, s.token("access", other)}, connect.CodeUnauthenticated},
		"purpose":       {entrant{s.box, s.token("traffic", s.box)}, connect.CodeUnauthenticated},
		"a box of none": {token(s, other), connect.CodeUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stat := connect.NewClient[protocol.StatRequest, protocol.StatResponse](client(t, false), s.url+"/filesystem.Filesystem/Stat", connect.WithInterceptors(c.with))
			_, err := stat.CallUnary(t.Context(), connect.NewRequest(&protocol.StatRequest{Path: theFile}))
			wantCode(t, err, c.want)
			if c.want == connect.CodeUnavailable && !strings.Contains(err.Error(), "was not found") {
				t.Errorf("SDKs know a box that is gone by other words than %q", err)
			}
		})
	}
}

// TestUnknownMembers wants members of a newer protocol to be taken.
func TestUnknownMembers(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for path, body := range map[string]string{
		"/filesystem.Filesystem/Stat": `{"path": "` + theFile + `", "followLinks": {"deep": [1]}}`,
		"/v2/sandboxes":               `{"templateID": "base", "timeout": 60, "colour": {"of": "magic"}}`,
	} {
		if status, answer := s.post(t, path, "application/json", body); status/100 != 2 {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
}

// post sends a body with a key and a token.
func (s service) post(t testing.TB, path, kind, body string) (status int, answer string) {
	t.Helper()
	return s.ask(t, "POST", path, body, func(h http.Header) {
		h.Set("Content-Type", kind)
		h.Set("X-Api-Key", s.key)
		token(s, s.box).enter(h)
	})
}

func (s service) ask(t testing.TB, method, path, body string, change func(http.Header)) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, text(body))
	if err != nil {
		t.Fatal(err)
	}
	change(r.Header)
	got, err := client(t, false).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	all, err := io.ReadAll(got.Body)
	if err != nil {
		t.Error(err)
	}
	return got.StatusCode, string(all)
}

// TestControlPlaneRefuses wants failures of the control plane in its own form.
func TestControlPlaneRefuses(t *testing.T) {
	t.Parallel()
	s := serve(t)
	lacking := newKey(t, s.Keys, api.MayUseKeys)
	for name, c := range map[string]struct {
		method, path, key, body string
		status                  int
		says                    string
	}{
		"no key":           {"POST", "/v2/sandboxes", "", "{}", 401, "E2B_API_KEY"},
		"no such key":      {"GET", "/v2/sandboxes", "sbx_live_no", "", 401, ""},
		"no permission":    {"GET", "/v2/sandboxes", lacking, "", 403, "Boxes"},
		"not JSON":         {"POST", "/v2/sandboxes", s.key, "{", 400, "document"},
		"wrong type":       {"POST", "/v2/sandboxes", s.key, `{"timeout": "long"}`, 400, "timeout"},
		"too long a life":  {"POST", "/v2/sandboxes", s.key, `{"timeout": 3155760000}`, 400, "ttl_seconds"},
		"no life":          {"POST", "/v2/sandboxes", s.key, `{"timeout": 0}`, 400, "timeout"},
		"a negative life":  {"POST", "/v2/sandboxes", s.key, `{"timeout": -1}`, 400, "ttl_seconds"},
		"large":            {"POST", "/v2/sandboxes", s.key, `{"templateID": "` + strings.Repeat("x", maxDocument) + `"}`, 413, "larger"},
		"volumes":          {"POST", "/v2/sandboxes", s.key, `{"volumeMounts": [{}]}`, 501, "unimplemented"},
		"mcp":              {"POST", "/v2/sandboxes", s.key, `{"mcp": {"x": {}}}`, 501, "unimplemented"},
		"templates":        {"POST", "/v3/templates", s.key, `{}`, 501, "unimplemented"},
		"build":            {"POST", "/v2/templates/a/builds/b", s.key, `{}`, 501, "unimplemented"},
		"their volumes":    {"GET", "/volumes", s.key, "", 501, "unimplemented"},
		"no such box":      {"GET", "/sandboxes/box_aaaaaaaaaaaaaaaaaaaa", s.key, "", 404, ""},
		"kill none":        {"DELETE", "/sandboxes/box_aaaaaaaaaaaaaaaaaaaa", s.key, "", 404, ""},
		"no such route":    {"GET", "/teams", s.key, "", 404, "/teams"},
		"a timeout missed": {"POST", "/sandboxes/" + s.box + "/timeout", s.key, "{}", 400, "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, answer := s.ask(t, c.method, c.path, c.body, func(h http.Header) {
				if c.key != "" {
					h.Set("X-Api-Key", c.key)
				}
			})
			var told failure
			if err := unmarshal(answer, &told); err != nil || status != c.status || told.Code != c.status || !strings.Contains(told.Message, c.says) {
				t.Errorf("%d %s (%v)", status, answer, err)
			}
		})
	}
}

// FuzzCall sends bytes as the envelopes of any call: none may end in an internal error
// or break the connection.
func FuzzCall(f *testing.F) {
	s := serve(f)
	var paths []string
	for path := range s.calls() {
		paths = append(paths, path)
	}
	kinds := []string{"application/json", "application/proto", "application/connect+json", "application/connect+proto", "application/grpc-web+proto"}
	for i := range kinds {
		f.Add(0, i, []byte(`{"path": "/a"}`))
		f.Add(1, i, envelope(0, []byte(`{"process": {"cmd": "true"}}`)))
		f.Add(2, i, envelope(2, []byte(`{}`)))
		f.Add(3, i, []byte{0, 0xff, 0xff, 0xff, 0xff, 1})
	}
	f.Fuzz(func(t *testing.T, path, kind int, body []byte) {
		at, as := paths[uint(path)%uint(len(paths))], kinds[uint(kind)%uint(len(kinds))]
		status, answer := s.ask(t, "POST", at, string(body), func(h http.Header) {
			h.Set("Content-Type", as)
			token(s, s.box).enter(h)
		})
		if status == http.StatusInternalServerError || strings.Contains(answer, "panic") {
			t.Errorf("%s %s: %d %s", at, as, status, answer)
		}
	})
}

// envelope returns a message as a stream has it.
func envelope(flags byte, message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(message))), message...)
}

// TestInputNeedsProcess wants the first message of an input stream to name its process.
func TestInputNeedsProcess(t *testing.T) {
	t.Parallel()
	s := serve(t)
	input := connect.NewClient[protocol.StreamInputRequest, protocol.StreamInputResponse](client(t, true), s.url+streamInput, connect.WithInterceptors(token(s, s.box)))
	stream := input.CallClientStream(t.Context())
	data := &protocol.StreamInputRequest_DataEvent{Input: &protocol.ProcessInput{Input: &protocol.ProcessInput_Stdin{Stdin: []byte("x")}}}
	if err := stream.Send(&protocol.StreamInputRequest{Event: &protocol.StreamInputRequest_Data{Data: data}}); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	_, err := stream.CloseAndReceive()
	wantCode(t, err, connect.CodeInvalidArgument)
}

// TestBodies writes files in each form of body.
func TestBodies(t *testing.T) {
	t.Parallel()
	s := serve(t)
	part := func(name string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + name + "\"\r\n\r\nx\r\n"
	}
	for name, c := range map[string]struct {
		path, kind, body string
		status           int
		says             string
	}{
		"octets":          {"/files?path=a", "application/octet-stream", "x", 200, `"path":"/home/user/a"`},
		"form":            {"/files", "multipart/form-data; boundary=b", part("d/1") + part("/d/2") + "--b--\r\n", 200, `/home/user/d/1","name":"1","type":"file"},{"path":"/d/2"`},
		"form and path":   {"/files?path=p", "multipart/form-data; boundary=b", part("x") + "--b--\r\n", 200, `/home/user/p`},
		"two of one path": {"/files?path=p", "multipart/form-data; boundary=b", part("x") + part("y") + "--b--\r\n", 400, "one file"},
		"no path":         {"/files", "application/octet-stream", "x", 400, "no path"},
		"no boundary":     {"/files", "multipart/form-data", "x", 400, "boundary"},
		"broken off":      {"/files", "multipart/form-data; boundary=b", part("x")[:40], 400, "body"},
		"no such user":    {"/files?path=a&username=none", "application/octet-stream", "x", 400, "no user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, answer := s.post(t, c.path, c.kind, c.body)
			if status != c.status || !strings.Contains(answer, c.says) {
				t.Errorf("%d %s", status, answer)
			}
		})
	}
}

// The hosts that get_host names have the domain of ports, and the port that the client uses.
func TestDomain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ ports, host, want string }{
		{"", "127.0.0.1:3000", "localhost:1"},
		{"ports.test", "127.0.0.1:3000", "ports.test:3000"},
		{"ports.test", "[::1]:3000", "ports.test:3000"},
		{"ports.test", "e2b.ports.test", "ports.test"},
	} {
		s := &Server{Config: Config{Domain: "localhost:1", PortDomain: c.ports}}
		if got := s.domain(&http.Request{Host: c.host}); got != c.want {
			t.Errorf("at %s with %q: %s, want %s", c.host, c.ports, got, c.want)
		}
	}
}

// TestHosts finds a box by its host name too.
func TestHosts(t *testing.T) {
	t.Parallel()
	s := serve(t)
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/health", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "49983-" + s.box + ".example.test"
	r.Header.Set(accessHeader, s.token("access", s.box))
	got, err := client(t, false).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusNoContent {
		t.Errorf("got %d", got.StatusCode)
	}
}
