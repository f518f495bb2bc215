package image_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	inmemory "github.com/google/go-containerregistry/pkg/registry"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/image"
	"sandbox/core/options"
	"sandbox/test/registry"
)

// TestPushToRealRegistry pushes to Debian's docker-registry, and pulls what was
// pushed.
func TestPushToRealRegistry(t *testing.T) {
	t.Parallel()
	login := func(r *options.Registry) { r.Username, r.Password = registry.User, registry.Password }
	for name, c := range map[string]struct {
		of      registry.Options
		how     api.Compression
		change  func(*options.Registry)
		problem string
	}{
		"plain":            {registry.Options{}, api.CompressNone, nil, ""},
		"TLS and login":    {registry.Options{TLS: true, Login: true}, api.CompressGzip, login, ""},
		"login":            {registry.Options{Login: true}, "", login, ""},
		"no login":         {registry.Options{Login: true}, "", nil, "takes nothing without a login"},
		"a wrong password": {registry.Options{Login: true}, "", func(r *options.Registry) { r.Username, r.Password = registry.User, "x" }, "refused the credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry.Start(t, c.of)
			known := options.Registry{Host: r.Host, Transport: options.TransportHTTP}
			if c.of.TLS {
				known.Transport = options.TransportHTTPS
			}
			if c.change != nil {
				c.change(&known)
			}
			from := image.Sources{Registries: []options.Registry{known}, Timeout: 10 * time.Second, TLS: r.TLS}
			f, g := newPuller(t, from), newPuller(t, from)
			f.imported(t, "x", source(t, pack(t, twoLayers(t).layout(t))))
			to := r.Host + "/team/x:1"
			pushed, err := f.Push(t.Context(), "x", image.PushOptions{As: to, Compression: c.how})
			f.nothingOpen(t)
			if c.problem != "" {
				if !fault.Is(err, fault.Upstream) || !strings.Contains(err.Error(), c.problem) || !strings.Contains(err.Error(), r.Host) {
					t.Errorf("%v, want %q", err, c.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			info, err := g.Pull(t.Context(), to, nil)
			if err != nil || info.Digest != pushed.Digest || pushed.Reference != to || g.read(t, to, "both") != "upper" {
				t.Errorf("%+v, %v, pushed %+v", info, err, pushed)
			}
			if again, err := g.Push(t.Context(), to, image.PushOptions{Compression: c.how}); err != nil || again != pushed {
				t.Errorf("pushed again: %+v, %v, want %+v", again, err, pushed)
			}
		})
	}
}

// sink is a registry that counts what it is sent.
type sink struct {
	host string

	mu    sync.Mutex
	asked []string                                                 // method and path of each request
	twist func(w http.ResponseWriter, r *http.Request) (done bool) // may answer in place of the registry
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{}
	inner := inmemory.New(inmemory.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.Method+" "+r.URL.Path)
		twist := s.twist
		s.mu.Unlock()
		if twist == nil || !twist(w, r) {
			inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	s.host = strings.TrimPrefix(server.URL, "http://")
	return s
}

// count returns how many requests began with prefix, and forgets all.
func (s *sink) count(prefix string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, asked := range s.asked {
		if strings.HasPrefix(asked, prefix) {
			n++
		}
	}
	s.asked = nil
	return n
}

func (s *sink) set(twist func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.twist = twist
}

// pusher returns a store with an image x.
func (s *sink) pusher(t *testing.T) *fixture {
	t.Helper()
	f := newPuller(t, image.Sources{
		Registries: []options.Registry{{Host: s.host, Transport: options.TransportHTTP}}, Timeout: 3 * time.Second,
	})
	f.imported(t, "x", source(t, pack(t, twoLayers(t).layout(t))))
	return f
}

// TestPushSendsWhatIsMissing pushes an image twice, and one that shares layers.
func TestPushSendsWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := newSink(t)
	f := s.pusher(t)
	stages := map[api.ImageStage]int{}
	watched := image.PushOptions{As: s.host + "/x:1", Progress: func(p image.Progress) { stages[p.Stage] |= p.Layer }}
	first, err := f.Push(t.Context(), "x", watched)
	if n := s.count("PATCH "); err != nil || n != 3 || stages[api.LayerPacking] != 3 || stages[api.LayerSending] != 3 || stages[api.LayerDone] != 3 {
		t.Fatalf("%v: %d blobs sent, want 2 layers and a config; stages %v", err, n, stages)
	}
	clear(stages)
	second, err := f.Push(t.Context(), "x", watched)
	if n := s.count("PATCH "); err != nil || n != 0 || second != first || len(stages) != 1 || stages[api.LayerDone] != 3 {
		t.Errorf("%v: %d blobs sent the second time, as %+v; stages %v", err, n, second, stages)
	}
	f.boxLayer(t, "x:latest", 1<<16)
	if _, err := f.Push(t.Context(), "x", image.PushOptions{As: s.host + "/x:2"}); err != nil || s.count("PATCH ") != 2 {
		t.Errorf("%v: want 1 layer and a config to be sent", err)
	}
	info, err := f.Pull(t.Context(), s.host+"/x:2", nil)
	if err != nil || len(info.Layers) != 3 || f.read(t, s.host+"/x:2", "both") != "box" {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestPushGoesOn has the connection break while a layer is sent: once, and each
// time until the next push.
func TestPushGoesOn(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]int{"once": 1, "always": 100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSink(t)
			f := s.pusher(t)
			var mu sync.Mutex
			left, whole := breaks, 0
			s.set(func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPatch {
					return false
				}
				mu.Lock()
				defer mu.Unlock()
				if whole++; whole == 1 || left == 0 { // one layer comes through
					return false
				}
				left--
				_, _ = io.CopyN(io.Discard, r.Body, 10)
				panic(http.ErrAbortHandler)
			})
			_, err := f.Push(t.Context(), "x", image.PushOptions{As: s.host + "/x:1"})
			if breaks == 1 {
				if n := s.count("PATCH "); err != nil || n != 4 {
					t.Errorf("%v: %d blobs sent, want 3 and 1 again", err, n)
				}
				return
			}
			if !fault.Is(err, fault.Upstream) || !strings.Contains(err.Error(), s.host) {
				t.Errorf("%v, want upstream_error", err)
			}
			f.nothingOpen(t)
			s.set(nil)
			s.count("")
			if _, err := f.Push(t.Context(), "x", image.PushOptions{As: s.host + "/x:1"}); err != nil || s.count("PATCH ") != 2 {
				t.Errorf("%v: want the other layer and the config to be sent", err)
			}
		})
	}
}

// TestPushFails has registries refuse a push in each way.
func TestPushFails(t *testing.T) {
	t.Parallel()
	answer := func(method, part string, status int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != method || !strings.Contains(r.URL.Path, part) {
				return false
			}
			w.WriteHeader(status)
			return true
		}
	}
	for name, c := range map[string]struct {
		twist func(http.ResponseWriter, *http.Request) bool
		want  string
	}{
		"no repository":        {answer("POST", "/uploads/", 404), "takes no images"},
		"no right":             {answer("POST", "/uploads/", 403), "takes nothing without a login"},
		"no place":             {answer("POST", "/uploads/", 202), "does not say where"},
		"another digest":       {answer("PUT", "/uploads/", 400), "status 400"},
		"the manifest refused": {answer("PUT", "/manifests/", 400), "status 400"},
		"too many requests":    {answer("HEAD", "/blobs/", 429), "too many requests"},
		"silent": {func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPatch {
				return false
			}
			_, _ = io.Copy(io.Discard, r.Body) // otherwise the server would not notice that the client has gone
			<-r.Context().Done()
			return true
		}, "sent nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSink(t)
			f := s.pusher(t)
			s.set(c.twist)
			_, err := f.Push(t.Context(), "x", image.PushOptions{As: s.host + "/x:1"})
			if !fault.Is(err, fault.Upstream) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), s.host) {
				t.Errorf("%v, want upstream_error with %q", err, c.want)
			}
			f.nothingOpen(t)
		})
	}
}

// TestPushNames refuses names that say not where to.
func TestPushNames(t *testing.T) {
	t.Parallel()
	s := newSink(t)
	f := s.pusher(t)
	for ref, c := range map[string]struct {
		as   string
		kind fault.Kind
		want string
	}{
		"x":    {"", fault.InvalidArgument, "names no registry"},
		"x:1":  {"", fault.ImageNotFound, "no image"},
		"../x": {"", fault.InvalidArgument, "begins with"},
	} {
		if _, err := f.Push(t.Context(), ref, image.PushOptions{As: c.as}); !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %v", ref, err, c.kind)
		}
	}
	for as, want := range map[string]string{
		"team/x": "names no registry", s.host + "/../x": "begins with", s.host + "/X": "image name",
		s.host + "/x@sha256:" + strings.Repeat("0", 64): "has a digest",
	} {
		if _, err := f.Push(t.Context(), "x", image.PushOptions{As: as}); !fault.Is(err, fault.InvalidArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", as, err, want)
		}
		if err := f.CheckPush(as); !fault.Is(err, fault.InvalidArgument) {
			t.Errorf("%s: %v", as, err)
		}
	}
	if n := s.count(""); n != 0 {
		t.Errorf("%d requests were made", n)
	}
}

// TestSlowPush sends a layer for longer than a registry may be silent.
func TestSlowPush(t *testing.T) {
	t.Parallel()
	s := newSink(t)
	f := newPuller(t, image.Sources{
		Registries: []options.Registry{{Host: s.host, Transport: options.TransportHTTP}}, Timeout: 5 * time.Second,
	})
	noise := make([]byte, 24<<20) // more than the buffers of a connection hold
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		noise[i] = byte(x)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "noise"), noise, 0o600); err != nil {
		t.Fatal(err)
	}
	f.imported(t, "x", dir)
	s.set(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch {
			r.Body = &slow{r.Body, time.Now()}
		}
		return false
	})
	if _, err := f.Push(t.Context(), "x", image.PushOptions{As: s.host + "/x:1"}); err != nil {
		t.Error(err)
	}
}

// slow is a body that is read over at least 10 s.
type slow struct {
	io.ReadCloser
	begun time.Time
}

func (s *slow) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p[:min(len(p), 256<<10)])
	if time.Since(s.begun) < 10*time.Second {
		time.Sleep(120 * time.Millisecond) // the registry's own slowness
	}
	return n, err
}
