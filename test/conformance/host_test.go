package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"sandbox/core/fault"
	"sandbox/core/local"
	"sandbox/daemon"
	"sandbox/metrics"
	"sandbox/test/openapi"
	"sandbox/test/registry"
	"sandbox/test/rootfs"
)

var pool = flag.Int("pool", 0, "how many boxes the home keeps ready; -1 makes every box that can be of a ready one")

// host is one home with all that works on it: a daemon, the library in this
// process, and a program in C.
type host struct {
	*server
	rootfs, share string
	core          *local.Host
	driver        string
	document      *openapi.Document
	others        map[string]func() *server // of other flags, and homes
	table         table
	drivers       drivers
	lacking       map[string]string // see readLacking
}

func newHost(t *testing.T) *host {
	t.Helper()
	if os.Geteuid() != 0 && !*rootless {
		t.Fatal("needs root: boxes are made of namespaces, mounts and cgroups")
	}
	h := &host{rootfs: rootfs.Busybox(t), share: t.TempDir(), document: openapi.Load(t), lacking: readLacking(t)}
	h.driver = filepath.Join(os.Getenv("HOME"), driverName) // where root has put it
	if !*rootless {
		h.driver = filepath.Join(t.TempDir(), driverName)
		compile(t, h.driver)
	}
	home := short(t)
	t.Setenv("HOME", t.TempDir()) // of profiles, and behind the build, whose cache is in it
	t.Setenv("SANDBOX_HOME", home)
	must(t, os.WriteFile(filepath.Join(home, "config.toml"), fmt.Appendf(nil, "pull = \"never\"\npool = %d\n", *pool), 0o600))
	must(t, os.Chmod(h.share, 0o755)) //nolint:gosec // boxes look into it
	must(t, os.WriteFile(filepath.Join(h.share, "file"), []byte("shared\n"), 0o600))
	var err error
	h.core, err = local.Open(local.Config{Home: home})
	must(t, err)
	images := registry.Commands(t)
	images["default"] = registry.Busybox(t)
	for ref, image := range images {
		file := filepath.Join(t.TempDir(), "image.tar")
		must(t, tarball.WriteToFile(file, name.MustParseReference("busybox"), image))
		_, err = h.core.Images.Import(t.Context(), ref, file, nil)
		must(t, err)
	}
	roots := []string{h.share, filepath.Dir(h.rootfs), "/usr"} // with the languages of this host
	h.server = serve(t, h.document, home, daemon.Config{HostRoots: roots, Logs: generous, MetricsInterval: metrics.MinInterval})
	h.others = map[string]func() *server{
		"hosted": sync.OnceValue(func() *server { return serve(t, h.document, short(t), daemon.Config{Hosted: true}) }),
		"prefix": sync.OnceValue(func() *server { return serve(t, h.document, short(t), daemon.Config{Prefix: "lab", HostRoots: roots}) }),
	}
	for name, c := range logServers(t, h) {
		h.others[name] = sync.OnceValue(func() *server { return serve(t, h.document, short(t), c) })
	}
	t.Cleanup(func() { must(t, h.core.Close(context.Background())) })
	t.Cleanup(func() { h.clear(t) })
	t.Cleanup(func() { h.drivers.leave(t) })
	return h
}

// clear removes the boxes that cases have left to the end of their time: what a shim
// then notes would bring a removed home back.
func (h *host) clear(t *testing.T) {
	t.Helper()
	recs, err := h.core.List(h.ctx)
	must(t, err)
	for _, rec := range recs {
		if err := h.core.Remove(h.ctx, rec.ID, true); !fault.Is(err, fault.BoxNotFound) {
			must(t, err)
		}
	}
}

// short returns a directory with a short path: a socket's name is.
func short(t *testing.T) string {
	t.Helper()
	parent := ""
	if *rootless {
		parent = filepath.Dir(os.TempDir()) // root removes it, as layers are of ids that are not the user's own
	}
	dir, err := os.MkdirTemp(parent, "c")
	must(t, err)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); !*rootless {
			must(t, err)
		}
	})
	return dir
}

// server is a daemon, and ways to ask it.
type server struct {
	ctx    context.Context // of all that is asked for
	url    string
	socket string
	key    string
	tcp    *http.Client
	unix   *http.Client
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// serve starts a daemon that ends with the test.
func serve(t *testing.T, document *openapi.Document, home string, c daemon.Config) *server {
	t.Helper()
	c.Home, c.Listen, c.Environment = home, "127.0.0.1:0", "default"
	ctx, end := context.WithCancel(context.Background())
	d, err := daemon.Open(ctx, c, daemon.Streams{Say: io.Discard, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- d.Serve(ctx) }()
	mount := ""
	if c.Hosted {
		mount = "/api"
	} else if c.Prefix != "" {
		mount = "/v1/" + c.Prefix
	}
	s := &server{ctx: ctx, url: strings.TrimSuffix(d.Address.URL, "/api"), socket: filepath.Join(home, "sandbox.sock")}
	s.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.socket)
	}
	over := func(dial func(context.Context, string, string) (net.Conn, error)) *http.Client {
		next := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 8}
		t.Cleanup(next.CloseIdleConnections)
		return &http.Client{Transport: &openapi.Transport{Document: document, Mount: mount, Next: next}, Timeout: time.Minute}
	}
	s.tcp, s.unix = over((&net.Dialer{}).DialContext), over(s.dial)
	s.key = s.newKey(t)
	t.Cleanup(func() {
		end()
		must(t, <-done)
	})
	if c.ClickHouseDSN == "" && c.ChdbLib == "" {
		s.awaitEngine(t)
	}
	return s
}

// newKey makes a key with all permissions, through the socket.
func (s *server) newKey(t *testing.T) string {
	t.Helper()
	body := `{"name":"all","permissions":["Boxes","Keys","observability.logs.query","observability.logs.write"]}`
	resp, err := s.unix.Post("http://box/v1/keys", "application/json", bytes.NewReader([]byte(body)))
	must(t, err)
	defer resp.Body.Close()
	var k struct{ Secret string }
	must(t, json.NewDecoder(resp.Body).Decode(&k))
	return k.Secret
}

// driverName is the name of the program in C.
const driverName = "driver"

// compile builds the program that uses the library. What that needs, and the drivers, are
// built already where make has started the suite.
func compile(t *testing.T, program string) {
	t.Helper()
	const root = "../.."
	if os.Getenv("MAKELEVEL") == "" {
		args := []string{"-C", root, "programs", "sandbox-logs", "build/libsandbox.so"}
		for _, b := range bindings {
			args = append(args, b.target)
		}
		if out, err := exec.Command("make", args...).CombinedOutput(); err != nil {
			t.Fatalf("make: %v\n%s", err, out)
		}
	}
	dir, err := filepath.Abs(root + "/build")
	must(t, err)
	t.Setenv("SANDBOX_HELPER_DIR", dir)
	out, err := exec.Command("cc", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-I", root+"/include", "-o", program,
		"testdata/driver.c", "-L", dir, "-lsandbox", "-Wl,-rpath,"+dir).CombinedOutput()
	if err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
}
