//go:build kubernetes

package suite

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/kubernetes"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// proxy is the API server behind an address of the test's own: it counts requests, and
// can be away.
type proxy struct {
	address  string
	requests atomic.Int64 // but those that watch
	handler  http.Handler
	server   *http.Server
}

func newProxy(t testing.TB) *proxy {
	t.Helper()
	keys := filepath.Dir(os.Getenv("KUBECONFIG"))
	cert, err := tls.LoadX509KeyPair(filepath.Join(keys, "admin.crt"), filepath.Join(keys, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	to, _ := url.Parse(apiServer) // a constant
	p := &proxy{address: "127.0.0.1:0"}
	behind := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		FlushInterval: -1,
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{cert}, InsecureSkipVerify: true}}, //nolint:gosec // the test's own
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	p.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			p.requests.Add(1)
		}
		behind.ServeHTTP(w, r)
	})
	p.start(t)
	t.Cleanup(p.stop)
	return p
}

func (p *proxy) start(t testing.TB) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	p.address = l.Addr().String()
	p.server = &http.Server{Handler: p.handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(l) }()
}

// stop refuses connections, and cuts those that there are.
func (p *proxy) stop() { _ = p.server.Close() }

// by has an engine go through the proxy.
func (p *proxy) by(t testing.TB) func(*kubernetes.Config) {
	file := kubeconfig(t, "http://"+p.address, "")
	return func(c *kubernetes.Config) { c.Kubeconfig = file }
}

// TestServerAway shows what goes on without the API server, what does not, and that all
// does when it is back.
func TestServerAway(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	p := newProxy(t)
	e := open(t, ns, p.by(t), func(c *kubernetes.Config) { c.Reach, c.ScheduleTimeout = kubernetes.ReachDirect, 15*time.Second })
	rec := made(t, e)
	running, err := e.Exec(t.Context(), rec.ID, options.Exec{Cmd: []string{"sh", "-c", "while sleep 0.1; do echo tick; done"}})
	if err != nil {
		t.Fatal(err)
	}
	ticks := make(chan struct{}, 10000)
	x := core.NewExec(running)
	defer x.Close()
	go func() {
		_, _ = x.Stream(t.Context(), make([]byte, 64), func(bool, []byte) error { ticks <- struct{}{}; return nil })
	}()
	waiting := make(chan error, 1)
	go func() {
		_, err := createBox(t.Context(), e, func(o *options.Box) { o.CPUs = 10000 })
		waiting <- err
	}()
	for recs, _ := e.List(t.Context()); len(recs) < 2; recs, _ = e.List(t.Context()) {
		time.Sleep(10 * time.Millisecond)
	}

	p.stop()
	for len(ticks) > 0 {
		<-ticks
	}
	for range 10 {
		<-ticks
	}
	if out, err := sh(t, e, rec.ID, "echo still"); err != nil || out != "still\n" {
		t.Errorf("a new command: %q, %v", out, err)
	}
	if _, err := e.Get(t.Context(), rec.ID); err != nil {
		t.Error(err)
	}
	began := time.Now()
	_, err = createBox(t.Context(), e)
	says(t, err, fault.Unavailable, "API server")
	if fault.Of(err).RetryAfter <= 0 {
		t.Error("it does not say when to try again")
	}
	t.Logf("a create is refused after %v", time.Since(began))
	err = <-waiting
	says(t, err, fault.Unavailable, "API server")

	p.start(t)
	began = time.Now()
	for { // a client does so, since it was told when to try again
		if _, err = createBox(t.Context(), e); !fault.Is(err, fault.Unavailable) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		t.Error(err)
	}
	t.Logf("a create works %v after the server is back", time.Since(began))
	recs, err := e.List(t.Context())
	if err != nil {
		t.Error(err)
	}
	for _, rec := range recs {
		if err := e.Remove(t.Context(), rec.ID, true); err != nil && rec.Status == api.Running {
			t.Error(err)
		}
	}
	empty(t, ns)
}

// TestPool has two engines take boxes of one pool.
func TestPool(t *testing.T) {
	t.Parallel()
	const pool, claims = 6, 4 // of each engine
	ns := namespace(t)
	var engines [2]*kubernetes.Engine
	var proxies [2]*proxy
	for i := range engines {
		proxies[i] = newProxy(t)
		engines[i] = open(t, ns, proxies[i].by(t), func(c *kubernetes.Config) {
			c.Pool, c.Reach, c.ScheduleTimeout = pool, kubernetes.ReachDirect, 20*time.Second
		})
	}
	// The first box of a kind shows both of them what to make ready.
	first := made(t, engines[0])
	if _, err := engines[1].List(t.Context()); err != nil {
		t.Fatal(err)
	}
	spares := func() (n int) {
		out := kubectl(t, "get", "pods", "--namespace", ns, "--selector=sandbox/spare", "--output=jsonpath={.items[*].status.phase}")
		return strings.Count(out, "Running")
	}
	wait := func(want int) int {
		for range 600 {
			if n := spares(); n >= want {
				return n
			}
			time.Sleep(200 * time.Millisecond)
		}
		t.Fatalf("%d spares, want %d", spares(), want)
		return 0
	}
	wait(pool)
	time.Sleep(2 * time.Second) // for one too many, if it comes
	if n := spares(); n > pool+1 {
		t.Errorf("%d spares, want %d for both engines together, or one more", n, pool)
	}

	type result struct {
		rec  core.Record
		took time.Duration
		err  error
	}
	results := make(chan result)
	before := proxies[0].requests.Load() + proxies[1].requests.Load()
	for i := range 2 * claims {
		go func() {
			began := time.Now()
			rec, err := createBox(t.Context(), engines[i%2], func(o *options.Box) {
				o.MemoryMiB = []int{64, 96}[i/2%2] // a spare serves any size
				o.Env, o.Labels, o.User, o.WorkingDir, o.TTLSeconds = map[string]string{"A": "b"}, map[string]string{"c": "d"}, "1234:5678", "/tmp", 600
			})
			results <- result{rec, time.Since(began), err}
		}()
	}
	pods := map[string]string{}
	var recs []core.Record
	for range 2 * claims {
		r := <-results
		if r.err != nil {
			t.Fatal(r.err)
		}
		recs = append(recs, r.rec)
		t.Logf("a box of %d MiB after %v", r.rec.Options.MemoryMiB, r.took)
	}
	t.Logf("%d requests for %d boxes, those for new spares among them", proxies[0].requests.Load()+proxies[1].requests.Load()-before, 2*claims)
	claimed, limits := 0, map[string]bool{}
	for _, rec := range recs {
		slot := kubectl(t, "get", "pods", "--namespace", ns, "--selector=sandbox/box="+rec.ID, "--output=jsonpath={.items[*].metadata.name}")
		if other := pods[slot]; other != "" || slot == "" {
			t.Errorf("boxes %s and %s are pod %s", other, rec.ID, slot)
		}
		pods[slot] = rec.ID
		if slot != pod(rec.ID) {
			claimed++
		}
		for _, e := range engines { // whoever has made it
			got, err := e.Get(t.Context(), rec.ID)
			if err != nil || got.Options.Labels["c"] != "d" || got.ExpiresAt == nil {
				t.Errorf("%+v, %v", got, err)
			}
			if limit, _ := sh(t, e, rec.ID, "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null"); limit != fmt.Sprintln(rec.Options.MemoryMiB<<20) {
				t.Errorf("box %s of %d MiB has %q bytes", rec.ID, rec.Options.MemoryMiB, limit)
			} else {
				limits[limit] = true
			}
			out, err := sh(t, e, rec.ID, "echo $A $(id -u):$(id -g) $PWD")
			if err != nil || out != "b 1234:5678 /tmp\n" {
				t.Errorf("%q, %v", out, err)
			}
		}
	}
	if len(limits) != 2 {
		t.Errorf("limits are %v, want two", limits)
	}
	if claimed < pool {
		t.Errorf("%d of %d boxes were spares, want %d", claimed, 2*claims, pool)
	}

	// What no node has, no spare gets.
	_, err := createBox(t.Context(), engines[0], func(o *options.Box) { o.CPUs = 10000 })
	says(t, err, fault.ResourceExhausted, "Insufficient cpu")

	// Spares of another kind go.
	last := made(t, engines[1], func(o *options.Box) { o.Image = "localhost/enginetest:1" })
	images := ""
	for range 100 {
		images = kubectl(t, "get", "pods", "--namespace", ns, "--selector=sandbox/spare", "--output=jsonpath={.items[*].spec.containers[0].image}")
		if strings.Count(images, "localhost/enginetest:1") >= pool && !strings.Contains(images, busybox) {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	if n := len(strings.Fields(images)); n < pool || n > pool+1 || strings.Contains(images, busybox) {
		t.Errorf("spares are of %q", images)
	}
	for _, rec := range append(recs, first, last) {
		if err := engines[0].Remove(t.Context(), rec.ID, true); err != nil {
			t.Error(err)
		}
	}
}
