package e2b

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/auth"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/options"
	"sandbox/spool"
	"sandbox/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// still is an engine whose boxes do nothing: they can be made, have one file, and
// start no command. Whatever a test sends, no file of the host is touched.
type still struct {
	core.Engine
	mu    sync.Mutex
	boxes map[string]core.Record
}

const theFile = "/home/user/a"

func (s *still) Create(_ context.Context, req core.CreateRequest) (core.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	rec := core.Record{ID: req.ID, Options: req.Options, Status: api.Running, CreatedAt: now, StartedAt: &now}
	s.boxes[req.ID] = rec
	return rec, nil
}

func (s *still) Get(_ context.Context, id string) (core.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec, ok := s.boxes[id]
	if !ok {
		return rec, fault.New(fault.BoxNotFound, "no box %s", id)
	}
	return rec, nil
}

func (s *still) List(context.Context) (all []core.Record, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rec := range s.boxes {
		all = append(all, rec)
	}
	return all, nil
}

func (s *still) Remove(_ context.Context, id string, _ bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.boxes, id)
	return nil
}

var errStill = fault.New(fault.Engine, "nothing happens in this box")

func (s *still) Exec(context.Context, string, options.Exec) (*core.Process, error) {
	return nil, errStill
}

func (s *still) Execs(context.Context, string) ([]api.Exec, error) { return nil, nil }

func (s *still) StatFile(_ context.Context, _ string, o options.StatFile) (api.File, error) {
	if o.Path != theFile {
		return api.File{}, fault.New(fault.FileNotFound, "no file %s", o.Path)
	}
	return api.File{Name: "a", Path: theFile, Type: api.RegularFile, Size: 1 << 40, Mode: 0o640}, nil
}

func (s *still) ListFiles(context.Context, string, options.ListFiles) (api.Files, error) {
	return api.Files{}, errStill
}

func (s *still) MakeDirectory(context.Context, string, options.MakeDirectory) (api.MadeDirectory, error) {
	return api.MadeDirectory{}, errStill
}

func (s *still) MoveFile(context.Context, string, options.MoveFile) (api.File, error) {
	return api.File{}, errStill
}

func (s *still) RemoveFile(context.Context, string, options.RemoveFile) (api.RemovedFiles, error) {
	return api.RemovedFiles{}, errStill
}

func (s *still) WatchFiles(context.Context, string, options.WatchFiles) (*core.FileWatch, error) {
	return nil, errStill
}

func (s *still) Upload(_ context.Context, _ string, u core.Upload, content io.Reader) (api.Uploaded, error) {
	n, err := io.Copy(io.Discard, content)
	return api.Uploaded{Dest: u.Dest, Size: n}, err
}

func (s *still) Download(_ context.Context, _ string, o options.Download) (*core.Download, error) {
	return nil, fault.New(fault.FileNotFound, "no file %s", o.Path)
}

func (s *still) User(_ context.Context, _ string, o options.User) (core.User, error) {
	if err := o.Check(); err != nil {
		return core.User{}, err
	}
	if o.Name != defaultUser || !o.Make {
		return core.User{}, fault.New(fault.InvalidArgument, "no user %s", o.Name)
	}
	return core.User{Name: o.Name, Home: "/home/user", Made: true}, nil
}

// Connect connects to a port of the host's own loopback.
func (s *still) Connect(ctx context.Context, _ string, port int) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	return conn, fault.Wrap(fault.PortUnreachable, err, "nothing listens on port %d", port)
}

// images has every image.
type images struct{ core.Images }

func (images) Resolve(_ context.Context, ref string) (core.Image, error) {
	return core.Image{Ref: ref, Layers: []string{"/"}}, nil
}

// service is a server on the engine above.
type service struct {
	*Server
	url string
	key string
	box string // id of one that runs
}

// serve starts a server, which ends with the test.
func serve(t testing.TB) service {
	t.Helper()
	home := t.TempDir()
	keys, err := auth.Open(filepath.Join(home, "keys"), nil)
	if err != nil {
		t.Fatal(err)
	}
	engine := &still{boxes: map[string]core.Record{}}
	rec, _ := engine.Create(t.Context(), core.CreateRequest{ID: ids.Box.New()})
	outputs := spool.Open(spool.Config{Dir: filepath.Join(home, "spool")})
	s := New(Config{
		Runtime: core.New(core.Config{Engine: engine, Images: images{}}), Keys: keys, Spool: outputs,
		Log: slog.New(slog.DiscardHandler), Secret: []byte("secret"), Domain: "localhost:1",
		Aliases: func() map[string]string { return map[string]string{"base": "debian"} },
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
		serving.Wait()
		outputs.Close()
		_ = keys.Close()
	})
	return service{Server: s, url: "http://" + l.Addr().String(), key: newKey(t, keys, api.MayUseBoxes), box: rec.ID}
}

func newKey(t testing.TB, keys *auth.Store, permission string) string {
	t.Helper()
	_, secret, err := keys.Create(t.Context(), auth.Local("default"), auth.Request{Name: "test", Permissions: []string{permission}, Environment: "default"})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// client is an HTTP client of one protocol, which ends with the test.
func client(t testing.TB, http2 bool) *http.Client {
	var p http.Protocols
	p.SetHTTP1(!http2)
	p.SetUnencryptedHTTP2(http2)
	transport := &http.Transport{Protocols: &p}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
