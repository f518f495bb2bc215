package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

const key = "sbx_live_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG000xyz"

// serve starts a server with the handler, and returns a client of it.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return dial(t, Options{URL: s.URL, Credential: NewApiKeyCredential(key)})
}

func dial(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestOptionsFromEnv(t *testing.T) {
	t.Setenv(EnvURL, "")
	t.Setenv(EnvAPIKey, key)
	t.Setenv(EnvPathPrefix, "team")
	if _, err := OptionsFromEnv(); !fault.Is(err, fault.Config) || !strings.Contains(err.Error(), EnvURL) {
		t.Errorf("without the URL: %v", err)
	}
	t.Setenv(EnvURL, "http://127.0.0.1:9090")
	if o, err := OptionsFromEnv(); err != nil || o.URL != "http://127.0.0.1:9090" || *o.Credential.key != key || o.PathPrefix != "team" {
		t.Errorf("%v, %v", o, err)
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	for address, base := range map[string]string{
		"http://h:1":          "http://h:1",
		"https://h/api/":      "https://h/api",
		"unix:///run/x.sock":  "http://localhost",
		"":                    "",
		"h:9090":              "",
		"127.0.0.1:9090":      "",
		"ftp://h":             "",
		"http://":             "",
		"unix://run/x.sock":   "",
		"http://u:secret@h":   "",
		"http://h?key=secret": "",
		"http://h\x7f/":       "",
	} {
		c, err := New(Options{URL: address})
		switch {
		case base == "" && (!fault.Is(err, fault.Config) || strings.Contains(err.Error(), "secret@")):
			t.Errorf("%q: %v, want config_error", address, err)
		case base != "" && (err != nil || c.base != base):
			t.Errorf("%q: %v, %v, want %s", address, c, err, base)
		}
	}
}

func TestPathPrefix(t *testing.T) {
	t.Parallel()
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.EscapedPath())
		_, _ = io.WriteString(w, `{"boxes":[]}`)
	}))
	defer s.Close()
	c := dial(t, Options{URL: s.URL, PathPrefix: "/a b/c/"})
	_, err1 := c.Boxes(t.Context(), Filter{})
	_, err2 := c.Me(t.Context())
	_, err3 := c.Box(t.Context(), "a/b:c%")
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(asked, " "); got != "/v1/a%20b/c/boxes /v1/me /v1/a%20b/c/boxes/a%2Fb:c%25" {
		t.Error(got)
	}
}

// TestKeyIsNeverShown checks that the key is not shown, however a credential is
// printed.
func TestKeyIsNeverShown(t *testing.T) {
	t.Parallel()
	o := Options{URL: "http://h", Credential: NewApiKeyCredential(key)}
	doc, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, o)
	for _, text := range []string{fmt.Sprint(o), fmt.Sprintf("%+v", o), fmt.Sprintf("%#v", o), fmt.Sprintf("%q", o), string(doc), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c)} {
		if strings.Contains(text, "abcdef") {
			t.Errorf("shows the key: %s", text)
		}
	}
	for k, masked := range map[string]string{
		key:                       "sbx_live_************xyz",
		"":                        "",
		"hunter2":                 "************",
		"sbx_live_short":          "************",
		strings.Repeat("x", 1000): "************",
	} {
		if got := NewApiKeyCredential(k).String(); got != masked {
			t.Errorf("%q is shown as %q", k, got)
		}
	}
	for _, bad := range []string{"a b", "a\nb", "é", "a\x00"} {
		if _, err := New(Options{URL: "http://h", Credential: NewApiKeyCredential(bad)}); !fault.Is(err, fault.Config) || strings.Contains(err.Error(), bad) {
			t.Errorf("key %q: %v", bad, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		body    string
		kind    fault.Kind
		message string
	}{
		"ours":           {409, `{"error":{"code":"invalid_state","message":"box runs","type":"x","request_id":"r1","fields":[{"field":"f","code":"c","message":"m"}]}}`, fault.InvalidState, "box runs"},
		"hosted":         {404, `{"detail":"Not Found","error":{"code":"not_found","message":"no such route"}}`, fault.NotFound, "no such route"},
		"unknown code":   {418, `{"error":{"code":"teapot","message":"short and stout"}}`, fault.Internal, "short and stout"},
		"a proxy's":      {503, `<html>no</html>`, fault.Unavailable, "503"},
		"no such site":   {404, `404 page not found`, fault.NotFound, "/api"},
		"unauthorized":   {401, ``, fault.Unauthenticated, "401"},
		"another API":    {403, `{"error":"forbidden"}`, fault.PermissionDenied, "403"},
		"a redirect":     {302, ``, fault.Upstream, "302"},
		"too many":       {429, `{}`, fault.RateLimited, "429"},
		"not JSON":       {200, `hello`, fault.Upstream, "not the expected JSON"},
		"another type":   {200, `{"id":7}`, fault.Upstream, "not the expected JSON"},
		"nothing at all": {200, ``, fault.Upstream, "not the expected JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Request-Id", "head")
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			_, err := server.Box(t.Context(), "a")
			if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.message) || strings.Contains(err.Error(), key) {
				t.Errorf("%v, want %s with %q", err, c.kind, c.message)
			}
			var answer *Error
			if c.status != 200 && (!errors.As(err, &answer) || answer.Status != c.status || answer.RequestID != "head") {
				t.Errorf("%+v", answer)
			}
			if name == "ours" && len(fault.Of(err).Fields) != 1 {
				t.Errorf("fields %v", fault.Of(err).Fields)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://127.0.0.1:1", "unix://" + filepath.Join(t.TempDir(), "no.sock")} {
		c := dial(t, Options{URL: address, Credential: NewApiKeyCredential(key)})
		_, err := c.Me(t.Context())
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), address) {
			t.Errorf("%s: %v", address, err)
		}
		if _, err := c.Attach(t.Context(), "a", "exec_a", AttachOptions{}); !fault.Is(err, fault.Unavailable) {
			t.Errorf("attach on %s: %v", address, err)
		}
	}
}

func TestContextEndsTheWait(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 1)
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { arrived <- struct{}{}; <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	if _, err := c.Me(ctx); !fault.Is(err, fault.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	if _, err := c.Attach(ctx, "a", "exec_a", AttachOptions{}); !fault.Is(err, fault.Canceled) {
		t.Errorf("canceled while a session was opened: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := c.Me(ctx); !fault.Is(err, fault.Timeout) {
		t.Errorf("timed out: %v", err)
	}
}

// refusedOnce is a transport whose first request finds no server.
type refusedOnce struct {
	http.RoundTripper
	tried bool
}

func (r *refusedOnce) RoundTrip(req *http.Request) (*http.Response, error) {
	if !r.tried {
		r.tried = true
		return nil, syscall.ECONNREFUSED
	}
	return r.RoundTripper.RoundTrip(req)
}

// TestRefusedRemoval: a removal that no server has had has removed nothing.
func TestRefusedRemoval(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(404)
		_, _ = io.WriteString(w, `{"error":{"code":"box_not_found","message":"no box"}}`)
	})
	c.http.Transport = &refusedOnce{RoundTripper: c.http.Transport}
	if _, err := c.RemoveBox(t.Context(), "nosuch", true); !fault.Is(err, fault.BoxNotFound) {
		t.Errorf("%v", err)
	}
}

func TestLongSocketPath(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	short := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", short)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"name":"me"}`)
	})}}
	s.Start()
	defer s.Close()
	if err := link(filepath.Dir(short), dir); err != nil {
		t.Fatal(err)
	}
	c := dial(t, Options{URL: "unix://" + dir + "/s"})
	if me, err := c.Me(t.Context()); err != nil || me.Name != "me" {
		t.Errorf("%+v, %v", me, err)
	}
	if !Listens(t.Context(), dir+"/s") || Listens(t.Context(), dir+"/t") {
		t.Error("Listens")
	}
}

// lossy returns a handler that breaks the first connection after a part of a
// reply, and sends a note for each request.
func lossy(notes chan<- string, part string, then http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		notes <- r.Method + " " + r.Header.Get("Idempotency-Key")
		if len(notes) == 1 {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_, _ = io.WriteString(conn, part)
			_ = conn.Close()
			return
		}
		then(w, r)
	}
}

func TestWhatMayBeSentTwice(t *testing.T) {
	t.Parallel()
	ok := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"id":"x","exit_code":0}`) }
	ctx := t.Context()
	for name, c := range map[string]struct {
		then  http.HandlerFunc
		do    func(*Client) error
		times int
		fine  bool
	}{
		"get":    {ok, func(c *Client) error { _, err := c.Box(ctx, "a"); return err }, 2, true},
		"create": {ok, func(c *Client) error { _, err := c.CreateBox(ctx, options.Defaults()); return err }, 2, true},
		"remove": {ok, func(c *Client) error { _, err := c.RemoveBox(ctx, "a", true); return err }, 2, true},
		"was removed": {gone, func(c *Client) error {
			id, err := c.RemoveBox(ctx, "a", true)
			if id != "a" {
				return fmt.Errorf("id %q", id)
			}
			return err
		}, 2, true},
		"get what is gone": {gone, func(c *Client) error { _, err := c.Box(ctx, "a"); return err }, 2, false},
		"exec":             {ok, func(c *Client) error { _, err := c.StartExec(ctx, "a", options.Exec{}); return err }, 1, false},
		"run":              {ok, func(c *Client) error { _, err := c.Run(ctx, RunRequest{}); return err }, 1, false},
		"stop":             {ok, func(c *Client) error { _, err := c.StopBox(ctx, "a", 0); return err }, 1, false},
		"key":              {ok, func(c *Client) error { _, err := c.CreateKey(ctx, NewKey{}); return err }, 1, false},
		"upload":           {ok, func(c *Client) error { _, err := c.Upload(ctx, "a", Upload{}, strings.NewReader("x")); return err }, 1, false},
	} {
		for lost, part := range map[string]string{"all": "", "the end": "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"} {
			t.Run(name+" lost "+lost, func(t *testing.T) {
				t.Parallel()
				notes := make(chan string, 10)
				err := c.do(serve(t, lossy(notes, part, c.then)))
				if (err == nil) != c.fine || len(notes) != c.times {
					t.Errorf("%v, sent %d times", err, len(notes))
				}
				if first, second := <-notes, len(notes); name == "create" && (len(first) < len("POST ")+20 || second != 1 || first != <-notes) {
					t.Errorf("the keys differ, or the first is none: %q", first)
				}
			})
		}
	}
}

// gone answers that there is no such box.
func gone(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(404)
	_, _ = io.WriteString(w, `{"error":{"code":"box_not_found","message":"no box"}}`)
}

// A box that is gone when its removal is tried again was removed by the try before,
// unless that one was refused before anything was done.
func TestRemovedByTheTryBefore(t *testing.T) {
	t.Parallel()
	for code, fine := range map[string]bool{"resource_exhausted": true, "storage_error": true, "rate_limited": false} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if asked.Add(1) > 1 {
					gone(w, nil)
					return
				}
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(429)
				_, _ = fmt.Fprintf(w, `{"error":{"code":%q,"message":"m"}}`, code)
			})
			if _, err := c.RemoveBox(t.Context(), "a", true); (err == nil) != fine || asked.Load() != 2 {
				t.Errorf("%v, asked %d times", err, asked.Load())
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(429)
			return
		}
		_, _ = io.WriteString(w, `{}`)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	if _, err := c.Me(ctx); !fault.Is(err, fault.RateLimited) || asked.Load() != 1 {
		t.Errorf("a wait that ctx would not last: %v, asked %d times", err, asked.Load())
	}
	asked.Store(0)
	if _, err := c.Me(t.Context()); err != nil || asked.Load() != 2 {
		t.Errorf("%v, asked %d times", err, asked.Load())
	}
}

func TestListingGoesOn(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("page_token") {
		case "":
			_, _ = io.WriteString(w, `{"boxes":[{"id":"a"},{"id":"b"}],"next_page_token":"2"}`)
		case "2":
			_, _ = io.WriteString(w, `{"boxes":[{"id":"b"},{"id":"c"}],"next_page_token":null}`)
		}
	})
	boxes, err := c.Boxes(t.Context(), Filter{Status: "running"})
	if err != nil || len(boxes) != 3 {
		t.Errorf("%+v, %v", boxes, err)
	}
}

func TestUploadForm(t *testing.T) {
	t.Parallel()
	var got []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		form, err := r.MultipartReader()
		if err != nil {
			t.Error(err)
			return
		}
		for part, err := form.NextPart(); err == nil; part, err = form.NextPart() {
			p, _ := io.ReadAll(part)
			got = append(got, part.FormName()+"="+part.FileName()+"="+string(p))
		}
		_, _ = io.WriteString(w, `{"ok":true,"dest":"/d/n","size":3}`)
	})
	mode := 0o750
	made, err := c.Upload(t.Context(), "a", Upload{Dest: "/d/", Name: `qu"o\te`, Mode: &mode, Tar: true}, strings.NewReader("\x00\xff\n"))
	if err != nil || made.Dest != "/d/n" || made.Size != 3 {
		t.Errorf("%+v, %v", made, err)
	}
	if want := []string{"dest==/d/", "mode==0750", "archive==tar", "file=qu\"o\\te=\x00\xff\n"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("sent %q, want %q", got, want)
	}
	broken := errors.New("the disk has gone")
	_, err = c.Upload(t.Context(), "a", Upload{}, io.MultiReader(strings.NewReader("x"), failing{broken}))
	if !errors.Is(err, broken) {
		t.Errorf("a source that fails: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestWhatAClientAsksFor sends a box with all members to the service's
// decoders, which refuse every member that they do not know.
func TestWhatAClientAsksFor(t *testing.T) {
	t.Parallel()
	box := options.Box{
		Name: "n", RootfsPath: "/r", RootfsWithin: "/", CPUs: 1, MemoryMiB: 64, DiskSizeGB: 2, WorkingDir: "/w", User: "u",
		Env: map[string]string{"A": "1"}, Network: "None", Labels: map[string]string{"k": "v"}, AutoRemove: true,
		Volumes: []options.Volume{{HostPath: "/h", GuestPath: "/g", ReadOnly: true, Within: "/"}, {Claim: "c", GuestPath: "/c"}},
		Ports:   []options.Port{{HostPort: 1, GuestPort: 2, Protocol: "Udp"}},
	}
	want := box
	want.RootfsWithin, want.Volumes = "", []options.Volume{{HostPath: "/h", GuestPath: "/g", ReadOnly: true}, {Claim: "c", GuestPath: "/c"}}
	var got options.Box
	var refused error
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		doc, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/v1/run" {
			got, _, refused = options.DecodeRun(doc)
		} else {
			got, refused = options.DecodeCreate(doc)
		}
		_, _ = io.WriteString(w, `{"exit_code":0}`)
	})
	for name, ask := range map[string]func() error{
		"create": func() error { _, err := c.CreateBox(t.Context(), box); return err },
		"run": func() error {
			box := box // a run has an image, and no rootfs_path
			box.Image, box.RootfsPath = "i", ""
			_, err := c.Run(t.Context(), RunRequest{Box: box, Exec: options.Exec{Cmd: []string{"true"}, Env: box.Env, WorkingDir: "/w", User: "u"}})
			return err
		},
	} {
		want := want
		if name == "run" {
			want.Image, want.RootfsPath = "i", ""
		}
		if err := ask(); err != nil || refused != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v, got %+v", name, err, refused, got)
		}
	}
}
