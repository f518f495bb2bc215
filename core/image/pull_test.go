package image_test

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/image"
	"sandbox/core/options"
)

// hub is a registry on the loopback interface.
type hub struct {
	*httptest.Server
	host string

	mu sync.Mutex
	// twist, if it is not nil, may answer a request instead of the
	// registry; it then returns true.
	twist func(w http.ResponseWriter, r *http.Request) bool
	asked []string // method and path of each request, except those of the test itself
}

func newHub(t testing.TB) *hub {
	t.Helper()
	h := &hub{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		twist := h.twist
		if r.Method == http.MethodGet {
			h.asked = append(h.asked, r.URL.Path)
		}
		h.mu.Unlock()
		if r.Method != http.MethodGet || twist == nil || !twist(w, r) {
			inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(h.Close)
	h.host = strings.TrimPrefix(h.URL, "http://")
	return h
}

// sources returns the Sources of a test: only this registry is asked.
func (h *hub) sources() image.Sources {
	return image.Sources{Registries: []options.Registry{{Host: h.host, Transport: options.TransportHTTP}}}
}

// count returns how many requests had part in their path.
func (h *hub) count(part string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, path := range h.asked {
		if strings.Contains(path, part) {
			n++
		}
	}
	return n
}

func (h *hub) set(twist func(w http.ResponseWriter, r *http.Request) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.twist = twist
}

// put sends an object to the registry.
func (h *hub) put(t testing.TB, method, path, mediaType, data string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, h.URL+path, strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", mediaType)
	resp, err := h.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatal(path, ": ", resp.Status)
	}
}

const (
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	ociManifest    = "application/vnd.oci.image.manifest.v1+json"
)

func (h *hub) blob(t testing.TB, repo, data string) {
	t.Helper()
	h.put(t, http.MethodPost, fmt.Sprintf("/v2/%s/blobs/uploads/?digest=sha256:%s", repo, digest([]byte(data))), "application/octet-stream", data)
}

// push uploads the image b as repo:tag and returns its manifest.
func (h *hub) push(t testing.TB, repo, tag string, b *built) string {
	t.Helper()
	files := b.layout(t)
	var manifest string
	for name, data := range files {
		switch {
		case strings.HasPrefix(data, `{"config":{"digest"`):
			manifest = data
		case strings.HasPrefix(name, "blobs/"):
			h.blob(t, repo, data)
		}
	}
	h.put(t, http.MethodPut, "/v2/"+repo+"/manifests/"+tag, ociManifest, manifest)
	return manifest
}

func TestPull(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := twoLayers(t)
	manifest := h.push(t, "team/app", "v1", b)
	pinned := h.host + "/team/app@sha256:" + digest([]byte(manifest))
	for ref, name := range map[string]string{
		h.host + "/team/app:v1": h.host + "/team/app:v1",
		"team/app:v1":           h.host + "/team/app:v1",
		pinned:                  pinned,
		"aliased":               pinned,
	} {
		t.Run(ref, func(t *testing.T) {
			t.Parallel()
			from := h.sources()
			from.Aliases = map[string]string{"aliased": pinned}
			f := newPuller(t, from)
			var mu sync.Mutex
			stages := map[api.ImageStage]int{}
			info, err := f.Pull(t.Context(), ref, func(p image.Progress) {
				mu.Lock()
				defer mu.Unlock()
				if p.Done == p.Total {
					stages[p.Stage] |= p.Layer
				}
			})
			if err != nil {
				t.Fatal("needs root: ", err)
			}
			if info.Name != name || info.Digest != "sha256:"+digest([]byte(manifest)) || info.ID != "sha256:"+digest([]byte(marshal(t, b.config))) {
				t.Errorf("info %+v", info)
			}
			if f.read(t, ref, "both") != "upper" || stages[api.LayerFetching] != 3 || stages[api.LayerUnpacking] != 3 || stages[api.LayerDone] != 3 {
				t.Errorf("layers %v, stages %v", info.Layers, stages)
			}
			nothingHalf(t, f)
			if err := f.Remove(t.Context(), ref, true); err != nil || len(f.layers(t)) != 0 {
				t.Errorf("Remove: %v, left %v", err, f.layers(t))
			}
		})
	}
}

// nothingHalf fails the test if a pull has left anything unfinished.
func nothingHalf(t testing.TB, f *fixture) {
	t.Helper()
	for _, pattern := range []string{"layers/tmp-*", "blobs/*"} {
		if left, _ := filepath.Glob(filepath.Join(f.home, pattern)); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	}
}

func TestIndexes(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	manifest := h.push(t, "x", "one", twoLayers(t))
	entry := func(arch, data string) map[string]any {
		return map[string]any{"mediaType": ociManifest, "digest": "sha256:" + digest([]byte(data)), "size": len(data), "platform": map[string]any{"os": "linux", "architecture": arch}}
	}
	documents := map[string]string{} // by tag and digest; the registry would not accept all of these
	index := func(tag string, entries ...any) map[string]any {
		data := marshal(t, map[string]any{"schemaVersion": 2, "manifests": entries})
		hex := "sha256:" + digest([]byte(data))
		documents[tag], documents[hex] = data, data
		return map[string]any{"mediaType": ociIndex, "digest": hex, "size": len(data)}
	}
	h.set(func(w http.ResponseWriter, r *http.Request) bool {
		data, ok := documents[path.Base(r.URL.Path)]
		if ok {
			w.Header().Set("Content-Type", ociIndex)
			_, _ = io.WriteString(w, data)
		}
		return ok
	})
	ours, other := entry(runtime.GOARCH, manifest), entry("s390x", manifest)
	attestation := entry("unknown", "attestation")
	attestation["platform"] = map[string]any{"os": "unknown", "architecture": "unknown"}
	inner := index("multi", other, attestation, ours)
	index("nested", inner)
	index("other", other, attestation)
	for range 8 {
		inner = index("tree", inner, inner)
	}
	index("empty")
	f := newPuller(t, h.sources())
	for _, tag := range []string{"multi", "nested"} {
		if info, err := f.Pull(t.Context(), "x:"+tag, nil); err != nil || f.read(t, "x:"+tag, "both") != "upper" {
			t.Errorf("%s: %+v, %v", tag, info, err)
		}
	}
	for tag, want := range map[string]string{"other": "the image is for linux/s390x, this machine is linux/" + runtime.GOARCH, "tree": "32 indexes", "empty": "no image"} {
		if _, err := f.Pull(t.Context(), "x:"+tag, nil); !fault.Is(err, fault.Image) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want image_error with %q", tag, err, want)
		}
	}
	nothingHalf(t, f)
}

// TestResolvePulls lets ten boxes ask for one image at once, through two stores
// of the home that act like two processes.
func TestResolvePulls(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.push(t, "x", "latest", twoLayers(t))
	f := newPuller(t, h.sources())
	other, err := image.Open(image.Config{Home: f.home, Unpacker: f.u, Sources: h.sources()})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			s := f.Store
			if i%2 == 1 {
				s = other
			}
			if img, err := s.Resolve(t.Context(), "x"); err != nil || img.Ref != h.host+"/x:latest" {
				t.Errorf("%+v, %v", img, err)
			}
		})
	}
	all.Wait()
	if n := h.count("/manifests/"); n != 1 {
		t.Errorf("the manifest was fetched %d times", n)
	}
	if n := h.count("/blobs/"); n != 3 || f.u.calls.Load() != 2 {
		t.Errorf("%d blobs fetched, %d layers unpacked; want the config and each of two layers once", n, f.u.calls.Load())
	}
	nothingHalf(t, f)
}

func TestImportedNamesComeFirst(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.push(t, "x", "latest", twoLayers(t))
	from := h.sources()
	from.Aliases = map[string]string{"default": h.host + "/x"}
	f := newPuller(t, from)
	local := source(t, pack(t, map[string]string{"f": "imported"}))
	f.imported(t, "x", local)
	f.imported(t, "default", local)
	for _, ref := range []string{"x", "default"} {
		before := h.count("/")
		if f.read(t, ref, "f") != "imported" || h.count("/") != before {
			t.Errorf("%s: the registry was asked %d times", ref, h.count("/")-before)
		}
		if err := f.Remove(t.Context(), ref, false); err != nil {
			t.Fatal(err)
		}
		if f.read(t, ref, "both") != "upper" {
			t.Errorf("%s is not that of the registry", ref)
		}
	}
}

// TestResume cuts the connection in the middle of each answer.
func TestResume(t *testing.T) {
	t.Parallel()
	b, big := oneBigLayer(t)
	for name, ranges := range map[string]bool{"with ranges": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			h.push(t, "x", "latest", b)
			var cuts atomic.Int64
			h.set(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, digest(big)) {
					return false
				}
				from := 0
				if n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); n == 1 && ranges {
					w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(big)-1, len(big)))
					w.Header().Set("Content-Length", fmt.Sprint(len(big)-from))
					w.WriteHeader(http.StatusPartialContent)
				} else {
					from = 0
					w.Header().Set("Content-Length", fmt.Sprint(len(big)))
				}
				if cuts.Add(1) <= 2 {
					_, _ = w.Write(big[from : from+len(big)/4])
					panic(http.ErrAbortHandler)
				}
				_, _ = w.Write(big[from:])
				return true
			})
			f := newPuller(t, h.sources())
			if _, err := f.Pull(t.Context(), "x", nil); err != nil || cuts.Load() != 3 {
				t.Fatalf("%v after %d requests", err, cuts.Load())
			}
			nothingHalf(t, f)
		})
	}
}

// TestResumeLater resumes the download of an earlier process, unless what it
// left is damaged.
func TestResumeLater(t *testing.T) {
	t.Parallel()
	b, big := oneBigLayer(t)
	for name, left := range map[string][]byte{
		"a half":    big[:len(big)/2],
		"all":       big,
		"too much":  append(big[:len(big):len(big)], 0),
		"damaged":   make([]byte, len(big)/2),
		"all wrong": make([]byte, len(big)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			h.push(t, "x", "latest", b)
			f := newPuller(t, h.sources())
			if err := os.Mkdir(filepath.Join(f.home, "blobs"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(f.home, "blobs", "partial-"+digest(big)), left, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Pull(t.Context(), "x", nil); err != nil {
				t.Fatal(err)
			}
			if name == "all" && h.count(digest(big)) != 0 {
				t.Error("fetched what was there")
			}
			nothingHalf(t, f)
		})
	}
}

// oneBigLayer returns an image and its only layer, which can't be compressed.
func oneBigLayer(t testing.TB) (*built, []byte) {
	t.Helper()
	noise := make([]byte, 300_000)
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		noise[i] = byte(x)
	}
	plain := pack(t, map[string]string{"noise": string(noise)})
	b := twoLayers(t)
	b.plain, b.packed = [][]byte{plain}, [][]byte{gz(t, plain)}
	b.config["rootfs"] = map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(plain)}}
	return b, b.packed[0]
}

func TestBrokenConnectionKeepsWhatCame(t *testing.T) {
	t.Parallel()
	b, big := oneBigLayer(t)
	h := newHub(t)
	h.push(t, "x", "latest", b)
	h.set(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, digest(big)) {
			return false
		}
		if r.Header.Get("Range") == "" {
			w.Header().Set("Content-Length", fmt.Sprint(len(big)))
			_, _ = w.Write(big[:1000])
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	})
	f := newPuller(t, h.sources())
	if _, err := f.Pull(t.Context(), "x", nil); !fault.Is(err, fault.Upstream) || !strings.Contains(err.Error(), h.host) {
		t.Fatalf("%v, want upstream_error", err)
	}
	left, err := os.ReadFile(filepath.Join(f.home, "blobs", "partial-"+digest(big)))
	if err != nil || len(left) != 1000 {
		t.Errorf("kept %d bytes, %v", len(left), err)
	}
}

func TestBadRegistries(t *testing.T) {
	t.Parallel()
	b, big := oneBigLayer(t)
	blob := "/blobs/sha256:" + digest(big)
	config := "/blobs/sha256:" + digest([]byte(marshal(t, b.config)))
	answer := func(path string, do func(w http.ResponseWriter, r *http.Request)) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, path) {
				do(w, r)
				return true
			}
			return false
		}
	}
	endless := func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(big); err != nil {
				return
			}
		}
	}
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	send := func(data string) func(w http.ResponseWriter, _ *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", ociManifest)
			_, _ = io.WriteString(w, data)
		}
	}
	status := func(code int) func(w http.ResponseWriter, _ *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	layers := func(n int) string {
		layer := map[string]any{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": "sha256:" + digest(big), "size": len(big)}
		all := make([]any, n)
		for i := range all {
			all[i] = layer
		}
		return marshal(t, map[string]any{"schemaVersion": 2, "layers": all, "config": map[string]any{"digest": "sha256:" + digest(nil), "size": 2}})
	}
	const manifest = "/manifests/latest"
	for name, c := range map[string]struct {
		twist func(http.ResponseWriter, *http.Request) bool
		kind  fault.Kind
		want  string
	}{
		"no image":         {answer(manifest, status(404)), fault.ImageNotFound, "has no such image"},
		"fails":            {answer(manifest, status(503)), fault.Upstream, "try again later"},
		"too many":         {answer(manifest, status(429)), fault.Upstream, "too many requests"},
		"wants a login":    {answer(manifest, status(401)), fault.Upstream, "docker login"},
		"silent at first":  {answer("/v2/", silent), fault.Upstream, "sent nothing for 300ms"},
		"silent manifest":  {answer(manifest, silent), fault.Upstream, "sent nothing"},
		"silent layer":     {answer(blob, silent), fault.Upstream, "sent nothing"},
		"endless manifest": {answer(manifest, endless), fault.Image, "over 4194304 bytes"},
		"endless layer":    {answer(blob, endless), fault.Upstream, "more than"},
		"slow layer": {answer(blob, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("x"))
				_ = http.NewResponseController(w).Flush()
				time.Sleep(20 * time.Millisecond)
			}
		}), fault.Upstream, "sent nothing"},
		"short layer":    {answer(blob, send("short")), fault.Upstream, "comes with 5 bytes"},
		"wrong layer":    {answer(blob, send(strings.Repeat("x", len(big)))), fault.Upstream, "comes with the digest"},
		"wrong range":    {answer(blob, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(206) }), fault.Upstream, "206"},
		"wrong config":   {answer(config, send("{}")), fault.Upstream, "has the digest"},
		"endless config": {answer(config, endless), fault.Image, "over 8388608 bytes"},
		"config of 1 GB": {answer(manifest, send(`{"schemaVersion":2,"config":{"size":1000000000,"digest":"sha256:`+digest(nil)+`"}}`)), fault.Image, "has 1000000000 bytes"},
		"layer of 1 EB":  {answer(manifest, send(strings.ReplaceAll(manifestOf(t, b), fmt.Sprint(`"size":`, len(big)), `"size":1000000000000000000`))), fault.Image, "1000000000000000000 bytes"},
		"layers, 129":    {answer(manifest, send(layers(129))), fault.Image, "129 layers, want 1 to 128"},
		"layers, 10^5":   {answer(manifest, send(layers(100_000))), fault.Image, "over 4194304 bytes"},
		"no JSON":        {answer(manifest, send("hello")), fault.Image, "manifest of the image can't be read"},
		"another type":   {answer(manifest, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }), fault.Image, "has the type"},
		"an old manifest": {answer(manifest, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.docker.distribution.manifest.v1+prettyjws")
		}), fault.Image, "v1+prettyjws"},
		"a web page":      {answer("/v2/", status(404)), fault.ImageNotFound, ""},
		"leads elsewhere": {answer(blob, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, blob, http.StatusFound) }), fault.Upstream, "redirects"},
		"leads to metadata": {answer(blob, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/x", http.StatusFound)
		}), fault.Upstream, "no registry may lead to"},
		"logs in at metadata": {answer("/v2/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://169.254.169.254/token"`)
			w.WriteHeader(http.StatusUnauthorized)
		}), fault.Upstream, "link-local"},
		"another machine": {answer(config, send("")), fault.Upstream, "has the digest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			h.push(t, "x", "latest", b)
			h.set(c.twist)
			from := h.sources()
			if strings.Contains(name, "silent") || strings.Contains(name, "slow") {
				from.Timeout = 300 * time.Millisecond
			}
			f := newPuller(t, from)
			_, err := f.Pull(t.Context(), h.host+"/x", nil)
			if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %v with %q", err, c.kind, c.want)
			}
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("%d characters", len(err.Error()))
			}
			if _, err := f.Resolve(t.Context(), h.host+"/x"); !fault.Is(err, fault.Image) {
				t.Errorf("Resolve: %v, want image_error", err)
			}
			if all, err := f.List(); len(all) != 0 || err != nil {
				t.Errorf("images: %v, %v", all, err)
			}
			if name != "slow layer" { // what was downloaded of it is kept
				nothingHalf(t, f)
			}
		})
	}
}

func manifestOf(t testing.TB, b *built) string {
	t.Helper()
	for _, data := range b.layout(t) {
		if strings.HasPrefix(data, `{"config":{"digest"`) {
			return data
		}
	}
	t.Fatal("no manifest")
	return ""
}

func TestRegistryThatIsDown(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := l.Addr().String()
	l.Close()
	f := newPuller(t, image.Sources{})
	if _, err := f.Pull(t.Context(), host+"/x", nil); !fault.Is(err, fault.Upstream) || !strings.Contains(err.Error(), "can't reach registry "+host) || !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
	nothingHalf(t, f)
}

// TestSearch searches for short names at several registries.
func TestSearch(t *testing.T) {
	t.Parallel()
	first, second := newHub(t), newHub(t)
	second.push(t, "x", "latest", twoLayers(t))
	from := first.sources()
	from.Registries = append(from.Registries, second.sources().Registries...)
	f := newPuller(t, from)
	if info, err := f.Pull(t.Context(), "x", nil); err != nil || info.Name != second.host+"/x:latest" || first.count("/manifests/") != 1 {
		t.Errorf("%+v, %v", info, err)
	}
	first.set(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true })
	if _, err := f.Pull(t.Context(), "x", nil); !fault.Is(err, fault.Upstream) || !strings.Contains(err.Error(), first.host) {
		t.Errorf("%v, want it to stop at the registry that fails", err)
	}
}

// TestCredentialsGoNowhereElse uses a registry that redirects to another host.
func TestCredentialsGoNowhereElse(t *testing.T) {
	t.Parallel()
	b, big := oneBigLayer(t)
	var leaked atomic.Bool
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked.Store(leaked.Load() || r.Header.Get("Authorization") != "")
		_, _ = w.Write(big)
	}))
	defer store.Close()
	h := newHub(t)
	h.push(t, "x", "latest", b)
	h.set(func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, _ := r.BasicAuth(); user != "user" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		if strings.HasSuffix(r.URL.Path, digest(big)) {
			http.Redirect(w, r, strings.Replace(store.URL, "127.0.0.1", "localhost", 1), http.StatusTemporaryRedirect)
			return true
		}
		return false
	})
	from := h.sources()
	from.Registries[0].Username, from.Registries[0].Password = "user", "secret"
	f := newPuller(t, from)
	if _, err := f.Pull(t.Context(), "x", nil); err != nil || leaked.Load() {
		t.Errorf("%v, leaked %v", err, leaked.Load())
	}
	from.Registries[0].Password = "wrong"
	f = newPuller(t, from)
	if _, err := f.Pull(t.Context(), "x", nil); !fault.Is(err, fault.Upstream) || !strings.Contains(err.Error(), "refused the credentials") || strings.Contains(err.Error(), "wrong\"") {
		t.Errorf("%v, want the credentials refused", err)
	}
}

// TestEndlessGreeting checks that a pull does not need to read the text of the
// registry's greeting, which never ends here.
func TestEndlessGreeting(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.push(t, "x", "latest", twoLayers(t))
	h.set(func(w http.ResponseWriter, r *http.Request) bool {
		for r.URL.Path == "/v2/" {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return true
			}
		}
		return false
	})
	if _, err := newPuller(t, h.sources()).Pull(t.Context(), "x", nil); err != nil {
		t.Error(err)
	}
}

// TestBearer logs in with a token that the registry's own token server issues
// for a password, and with a token that is configured.
func TestBearer(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.push(t, "x", "latest", twoLayers(t))
	h.set(func(w http.ResponseWriter, r *http.Request) bool {
		user, password, _ := r.BasicAuth()
		switch {
		case r.URL.Path == "/token" && user == "user" && password == "secret" && r.URL.Query().Get("scope") == "repository:x:pull":
			_, _ = io.WriteString(w, `{"token":"good"}`)
			return true
		case r.Header.Get("Authorization") == "Bearer good":
			return false
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="x"`, h.URL))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	for name, c := range map[string]struct {
		user, password, token string
		problem               string
	}{
		"password":         {"user", "secret", "", ""},
		"wrong password":   {"user", "wrong", "", "refused the credentials"},
		"token":            {"", "", "good", ""},
		"an expired token": {"", "", "old", "refused the credentials"},
		"none":             {"", "", "", "docker login"},
	} {
		from := h.sources()
		from.Registries[0].Username, from.Registries[0].Password, from.Registries[0].BearerToken = c.user, c.password, c.token
		_, err := newPuller(t, from).Pull(t.Context(), h.host+"/x", nil)
		if c.problem == "" && err != nil || c.problem != "" && (!fault.Is(err, fault.Upstream) || !strings.Contains(err.Error(), c.problem)) {
			t.Errorf("%s: %v, want %q", name, err, c.problem)
		}
	}
}

func TestNeverPulls(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.push(t, "x", "latest", twoLayers(t))
	from := h.sources()
	from.Never = true
	f := newPuller(t, from)
	if _, err := f.Resolve(t.Context(), "x"); !fault.Is(err, fault.Image) || h.count("/") != 0 {
		t.Errorf("%v, %d requests", err, h.count("/"))
	}
}

func TestPlainHTTPOnlyWhereAllowed(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.push(t, "x", "latest", twoLayers(t))
	from := h.sources()
	from.Registries[0].Transport = options.TransportHTTPS
	f := newPuller(t, from)
	if _, err := f.Pull(t.Context(), h.host+"/x", nil); !fault.Is(err, fault.Upstream) || !strings.Contains(err.Error(), "transport to http") {
		t.Errorf("%v, want it refused", err)
	}
}

// TestLayerTwice pulls an image that has the same layer at two positions.
func TestLayerTwice(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := twoLayers(t)
	b.plain, b.packed, b.types = append(b.plain, b.plain[0]), append(b.packed, b.packed[0]), append(b.types, b.types[0])
	b.config["rootfs"] = map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(b.plain[0]), "sha256:" + digest(b.plain[1]), "sha256:" + digest(b.plain[0])}}
	h.push(t, "x", "latest", b)
	f := newPuller(t, h.sources())
	img, err := f.Resolve(t.Context(), "x")
	if err != nil || len(img.Layers) != 2 || !strings.HasSuffix(img.Layers[1], digest(b.plain[0])) {
		t.Errorf("%v, %v", img.Layers, err)
	}
}
