package httpd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/auth"
	"sandbox/core"
	"sandbox/core/enginetest/fake"
	"sandbox/core/ids"
	"sandbox/core/image"
	"sandbox/httpd"
	"sandbox/httpd/share"
	"sandbox/spool"
	"sandbox/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// service is a server on a TCP port and a Unix socket, with the fake engine.
type service struct {
	t       testing.TB
	url     string // of TCP, with /api when hosted
	socket  string
	keys    *auth.Store
	runtime *core.Runtime
	key     string // the administrator's
	log     *logBuffer
	image   string // directory of the image "default"
	client  *http.Client
	server  *httpd.Server
	only    map[string]string // keys of one permission; see onlyKey
}

// start starts a service that change may change.
func start(t testing.TB, change ...func(*httpd.Config)) *service {
	t.Helper()
	home := t.TempDir()
	s := &service{t: t, image: t.TempDir(), log: &logBuffer{}, socket: filepath.Join(home, "s")}
	keys, err := auth.Open(filepath.Join(home, "keys"), nil)
	must(t, err)
	idempotency, err := httpd.OpenIdempotency(filepath.Join(home, "creates"))
	must(t, err)
	outputs := spool.Open(spool.Config{Dir: filepath.Join(home, "spool")})
	engine := fake.NewEngine(t)
	images := fake.Images{"default": {Ref: "default", ID: "sha256:1", Layers: []string{s.image}}}
	store, err := image.Open(image.Config{Home: home})
	must(t, err)
	s.runtime, s.keys = core.New(core.Config{Engine: engine, Images: images}), keys
	shares, err := share.Open(filepath.Join(home, "share"), slog.New(slog.DiscardHandler))
	must(t, err)
	c := httpd.Config{
		Shares:  shares,
		Runtime: s.runtime, Keys: keys, Idempotency: idempotency, Environment: "default",
		Spool: outputs, Images: store, Held: home,
		Log: slog.New(slog.NewJSONHandler(s.log, nil)), Closed: []string{s.socket},
	}
	for _, f := range change {
		f(&c)
	}
	s.server, err = httpd.New(c)
	must(t, err)
	s.key = s.newKey(auth.Request{Permissions: api.Permissions()})
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	unix, err := net.Listen("unix", s.socket)
	must(t, err)
	s.url = "http://" + tcp.Addr().String()
	if c.Hosted {
		s.url += "/api"
	}
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	var serving sync.WaitGroup
	serving.Go(func() { check(t, s.server.Serve(tcp, httpd.ByKey)) })
	serving.Go(func() { check(t, s.server.Serve(unix, httpd.ByFile)) })
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		check(t, s.server.Close(ctx))
		serving.Wait()
		outputs.Close()
		check(t, keys.Close())
	})
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// newKey makes a key and returns its secret.
func (s *service) newKey(r auth.Request) string {
	s.t.Helper()
	r.Name = "test"
	if r.Environment == "" {
		r.Environment = "default"
	}
	_, secret, err := s.keys.Create(s.t.Context(), auth.Local(r.Environment), r)
	must(s.t, err)
	return secret
}

// answer is a reply, read.
type answer struct {
	status int
	header http.Header
	text   string
	json   map[string]any
}

// ask sends a request with the administrator's key; change may change it.
func (s *service) ask(method, path, body string, change ...func(*http.Request)) answer {
	s.t.Helper()
	return s.send(s.client, s.url, method, path, body, append([]func(*http.Request){bearer(s.key)}, change...)...)
}

// local sends a request through the Unix socket, without a key.
func (s *service) local(method, path, body string, change ...func(*http.Request)) answer {
	s.t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.socket)
	}}
	defer transport.CloseIdleConnections()
	return s.send(&http.Client{Transport: transport}, "http://socket", method, path, body, change...)
}

func (s *service) send(client *http.Client, base, method, path, body string, change ...func(*http.Request)) answer {
	s.t.Helper()
	req, err := http.NewRequest(method, base+path, strings.NewReader(body))
	must(s.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(req)
	}
	resp, err := client.Do(req)
	must(s.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(s.t, err)
	a := answer{status: resp.StatusCode, header: resp.Header, text: string(text)}
	_ = json.Unmarshal(text, &a.json) // some replies are no JSON
	return a
}

func bearer(secret string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) }
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// code returns the code of an error.
func (a answer) code() string {
	e, ok := a.json["error"].(map[string]any)
	if !ok { // a problem object of the log queries
		e = a.json
	}
	code, _ := e["code"].(string)
	return code
}

// want checks status and code; "" for a success.
func (a answer) want(t testing.TB, status int, code string) answer {
	t.Helper()
	if a.status != status || a.code() != code {
		t.Errorf("got %d %s, want %d %s", a.status, a.text, status, code)
	}
	return a
}

// create makes a box and returns its id.
func (s *service) create(body string) string {
	s.t.Helper()
	a := s.ask("POST", "/v1/boxes", body).want(s.t, 201, "")
	id, _ := a.json["id"].(string)
	return id
}

// state is all that requests can change, to be compared.
func (s *service) state() string {
	s.t.Helper()
	recs, err := s.runtime.List(s.t.Context())
	must(s.t, err)
	keys := s.keys.List()
	for i := range keys {
		keys[i].LastUsedAt = nil
	}
	text, err := json.Marshal([]any{recs, keys})
	must(s.t, err)
	return string(text)
}

// logBuffer keeps what a server logs.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// fill returns a route's path with a box that exists.
func fill(pattern, id string) string {
	return strings.NewReplacer("{id}", id, "{eid}", ids.Exec.New(), "{cid}", ids.Context.New(), "{port}", "1", "{path}", "", "{token}", "t").Replace(pattern)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}
