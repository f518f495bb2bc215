package daemon

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandbox/core"
	"sandbox/core/enginetest/fake"
	"sandbox/core/fault"
	"sandbox/core/local"
	"sandbox/core/options"
	"sandbox/profile"
	"sandbox/test/leak"
	"sandbox/test/members"
)

func TestMain(m *testing.M) {
	// The credentials of the user who runs the tests are not theirs.
	home, err := os.MkdirTemp("", "user-")
	if err == nil {
		err = os.Setenv("HOME", home)
	}
	if err != nil {
		panic(err)
	}
	code := leak.Run(m)
	_ = os.RemoveAll(home)
	os.Exit(code)
}

// run is a daemon that serves, with a fake engine that outlives it.
type run struct {
	*Daemon
	said  *bytes.Buffer
	end   func() error
	ended bool

	reload chan os.Signal
}

// launch starts a daemon on a home. Tests that use it have the credentials
// file in common, and don't run in parallel.
func launch(t *testing.T, home string, runtime *core.Runtime, change ...func(*Config)) *run {
	t.Helper()
	c := Config{Home: home, Listen: "127.0.0.1:0", Environment: "default", ChdbLib: filepath.Join(home, "none")}
	for _, f := range change {
		f(&c)
	}
	s, err := c.check()
	if err != nil {
		t.Fatal(err)
	}
	r := &run{said: &bytes.Buffer{}, reload: make(chan os.Signal)}
	r.Daemon, err = start(t.Context(), s, &local.Host{Runtime: runtime}, Streams{Say: r.said, Log: slog.New(slog.DiscardHandler), Reload: r.reload})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx) }()
	r.end = func() error {
		if r.ended {
			return nil
		}
		r.ended = true
		cancel()
		return <-done
	}
	t.Cleanup(func() {
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func newRuntime(t *testing.T) func() *core.Runtime {
	engine := fake.NewEngine(t)
	images := fake.Images{"default": {Ref: "default", Layers: []string{t.TempDir()}}}
	return func() *core.Runtime { return core.New(core.Config{Engine: engine, Images: images}) }
}

func storedProfile(t *testing.T, name string) (profile.Profile, bool) {
	t.Helper()
	profiles, err := profile.UserFile(os.Getenv("HOME"))
	if err != nil {
		t.Fatal(err)
	}
	p, ok, err := profiles.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return p, ok
}

func forget(t *testing.T) {
	t.Helper()
	profiles, err := profile.UserFile(os.Getenv("HOME"))
	if err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(profiles.Path)
}

// get asks for a path with a key and returns status and body.
func get(t *testing.T, c *http.Client, url, key string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(text)
}

func fresh(t *testing.T, socket string) *http.Client {
	transport := &http.Transport{}
	if socket != "" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// TestFirstAndLaterStarts follows the administrator's key over starts.
func TestFirstAndLaterStarts(t *testing.T) {
	forget(t)
	home, runtime := t.TempDir(), newRuntime(t)
	first := launch(t, home, runtime())
	p, ok := storedProfile(t, profile.Default)
	if !ok {
		t.Fatalf("no profile was stored; said %s", first.said)
	}
	members.Equal(t, "the first start", members.Of{
		"URL": {p.URL, first.Address.URL}, "path prefix": {p.PathPrefix, ""},
		"tells of the key": {strings.Contains(first.said.String(), "administrator"), true}, "tells the key": {strings.Contains(first.said.String(), p.APIKey[9:]), false},
	})
	if status, text := get(t, fresh(t, ""), p.URL+"/v1/keys", p.APIKey); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	box, _, err := first.runtime.Create(t.Context(), func() options.Box {
		o := options.Defaults()
		o.Image, o.AutoRemove, o.CPUs = "default", false, 1
		return o
	}())
	if err != nil {
		t.Fatal(err)
	}
	if err := first.end(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(first.Socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
	again := launch(t, home, runtime(), func(c *Config) { c.Prefix = "p" })
	moved, _ := storedProfile(t, profile.Default)
	if moved.URL != again.Address.URL || moved.APIKey != p.APIKey || moved.PathPrefix != "p" {
		t.Errorf("got %q %q, want %q", moved.URL, moved.PathPrefix, again.Address.URL)
	}
	status, text := get(t, fresh(t, ""), moved.URL+"/v1/p/boxes/"+box.ID(), p.APIKey)
	if status != 200 || !strings.Contains(text, `"running"`) {
		t.Errorf("the box after a restart: %d %s", status, text)
	}
	if strings.Contains(again.said.String(), "administrator") {
		t.Errorf("said %s", again.said)
	}
}

// TestForeignProfile wants another server's profile left alone.
func TestForeignProfile(t *testing.T) {
	forget(t)
	profiles, err := profile.UserFile(os.Getenv("HOME"))
	if err != nil {
		t.Fatal(err)
	}
	theirs := profile.Profile{URL: "https://example.com/api", APIKey: "sbx_live_theirs"}
	if err := profiles.Put(profile.Default, theirs); err != nil {
		t.Fatal(err)
	}
	d := launch(t, t.TempDir(), newRuntime(t)())
	if p, _ := storedProfile(t, profile.Default); p != theirs {
		t.Errorf("got %+v", p)
	}
	if p, ok := storedProfile(t, d.Address.URL); !ok || p.URL != d.Address.URL || !strings.Contains(d.said.String(), d.Address.URL) {
		t.Errorf("%+v, said %s", p, d.said)
	}
}

// TestNoCredentials wants a start where they can't be written, and no key
// that nobody knows.
func TestNoCredentials(t *testing.T) {
	forget(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", file)
	d := launch(t, t.TempDir(), newRuntime(t)())
	if n := len(d.keys.List()); n != 0 || !strings.Contains(d.said.String(), "keys create") {
		t.Errorf("%d keys, said %s", n, d.said)
	}
	if status, _ := get(t, fresh(t, d.Socket), "http://socket/v1/me", ""); status != 200 {
		t.Errorf("the socket answers %d", status)
	}
}

func TestSocket(t *testing.T) {
	forget(t)
	home := filepath.Join(t.TempDir(), strings.Repeat("long/", 40)) // more than an address of a socket holds
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	d := launch(t, home, newRuntime(t)(), func(c *Config) { c.Listen = NoListen })
	info, err := os.Lstat(d.Socket)
	if err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if d.tcp != nil || len(d.places()) != 1 || d.Address.URL != "" {
		t.Errorf("listens on %v", d.places())
	}
	short := filepath.Join(t.TempDir(), "home")
	if err := os.Symlink(home, short); err != nil {
		t.Fatal(err)
	}
	if status, text := get(t, fresh(t, short+"/sandbox.sock"), "http://socket/v1/boxes", ""); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	if _, ok := storedProfile(t, profile.Default); ok {
		t.Error("a key for a server without TCP")
	}
}

// startErr returns the failure of a start.
func startErr(t *testing.T, change func(*Config)) error {
	t.Helper()
	c := Config{Home: t.TempDir(), Listen: "127.0.0.1:0", Environment: "default"}
	change(&c)
	s, err := c.check()
	if err != nil {
		return err
	}
	d, err := start(t.Context(), s, &local.Host{Runtime: newRuntime(t)()}, Streams{Say: io.Discard, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		_ = d.Close(t.Context())
	}
	return err
}

func TestStartRefuses(t *testing.T) {
	forget(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	file, live := filepath.Join(dir, "file"), filepath.Join(dir, "live")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("unix", live)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for name, tt := range map[string]struct {
		change func(*Config)
		kind   fault.Kind
		says   string
	}{
		"a taken port":          {func(c *Config) { c.Listen = taken.Addr().String() }, fault.PortInUse, "taken"},
		"no port":               {func(c *Config) { c.Listen = "127.0.0.1" }, fault.Config, "--listen"},
		"no port of E2B":        {func(c *Config) { c.E2B = "3000" }, fault.Config, "--e2b"},
		"not E2B's address":     {func(c *Config) { c.E2B = "192.0.2.1:0" }, fault.Config, "--e2b"},
		"not our address":       {func(c *Config) { c.Listen = "192.0.2.1:0" }, fault.Config, "--listen"},
		"a file as socket":      {func(c *Config) { c.Socket = file }, fault.Config, "not a socket"},
		"a live socket":         {func(c *Config) { c.Socket = live }, fault.InvalidState, "answers"},
		"a directory as socket": {func(c *Config) { c.Socket = dir }, fault.Config, "not a socket"},
		"nowhere":               {func(c *Config) { c.Socket = dir + "/no/such" }, fault.Config, "--socket"},
		"publish":               {func(c *Config) { c.Publish = []string{"127.0.0.1", "localhost"} }, fault.Config, "--publish"},
		"environment":           {func(c *Config) { c.Environment = "a b" }, fault.Config, "--environment"},
		"too often measured":    {func(c *Config) { c.MetricsInterval = time.Millisecond }, fault.Config, "--metrics-interval"},
		"too seldom measured":   {func(c *Config) { c.MetricsInterval = 2 * time.Hour }, fault.Config, "--metrics-interval"},
		"a domain of ports":     {func(c *Config) { c.PortDomain = "a_b.test" }, fault.Config, "--port-domain"},
		"an address of ports":   {func(c *Config) { c.PortDomain = "127.0.0.1" }, fault.Config, "--port-domain"},
		"half of TLS":           {func(c *Config) { c.TLSCert = file }, fault.Config, "--tls-key"},
		"bad TLS":               {func(c *Config) { c.TLSCert, c.TLSKey = file, file }, fault.Config, "TLS"},
		"prefix":                {func(c *Config) { c.Prefix = "a/b" }, fault.Config, "prefix"},
		"prefix and hosted":     {func(c *Config) { c.Prefix, c.Hosted = "a", true }, fault.Config, "prefix"},
		"a root":                {func(c *Config) { c.HostRoots = []string{dir + "/nosuch"} }, fault.Config, "host root"},
		"root of the host":      {func(c *Config) { c.HostRoots = []string{"/"} }, fault.Config, "host root"},
	} {
		t.Run(name, func(t *testing.T) {
			err := startErr(t, tt.change)
			if !fault.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %v about %s", err, tt.kind, tt.says)
			}
		})
	}
	if text, err := os.ReadFile(file); string(text) != "precious" {
		t.Errorf("the file in the socket's place: %q, %v", text, err)
	}
}

// A home is free if nobody has its lock, also when this process came too late to wait for it.
func TestLock(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	first, err := lock(t.Context(), home, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(t.Context(), home, 0); !fault.Is(err, fault.InvalidState) {
		t.Errorf("a lock that is held: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	again, err := lock(t.Context(), home, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestStaleSocket is the socket that a killed daemon left.
func TestStaleSocket(t *testing.T) {
	forget(t)
	home := t.TempDir()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(home, "sandbox.sock")})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	d := launch(t, home, newRuntime(t)())
	if status, _ := get(t, fresh(t, d.Socket), "http://socket/healthz", ""); status != 200 {
		t.Errorf("got %d", status)
	}
	if err := startErr(t, func(c *Config) { c.Home, c.Socket = home, filepath.Join(t.TempDir(), "s") }); !fault.Is(err, fault.InvalidState) {
		t.Errorf("a second daemon: %v", err)
	}
	if status, _ := get(t, fresh(t, d.Socket), "http://socket/healthz", ""); status != 200 {
		t.Errorf("after a second start: %d", status)
	}
}

// makeCertificate writes a certificate for 127.0.0.1.
func makeCertificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return cert, key, pool
}

func TestTLS(t *testing.T) {
	forget(t)
	cert, key, pool := makeCertificate(t)
	d := launch(t, t.TempDir(), newRuntime(t)(), func(c *Config) { c.TLSCert, c.TLSKey, c.Hosted = cert, key, true })
	p, _ := storedProfile(t, profile.Default)
	if !strings.HasPrefix(p.URL, "https://127.0.0.1:") || !strings.HasSuffix(p.URL, "/api") {
		t.Errorf("profile for %q", p.URL)
	}
	c := fresh(t, "")
	c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: pool}
	if status, text := get(t, c, p.URL+"/v1/boxes", p.APIKey); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := get(t, fresh(t, ""), strings.Replace(strings.TrimSuffix(p.URL, "/api"), "https", "http", 1)+"/healthz", p.APIKey); status != 400 {
		t.Errorf("without TLS: %d", status)
	}
	// A renewed certificate is shown after a reload, and a damaged one never.
	renewed, renewedKey, newPool := makeCertificate(t)
	for from, to := range map[string]string{renewed: cert, renewedKey: key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	reload := func() {
		d.reload <- syscall.SIGHUP
		d.reload <- syscall.SIGHUP // taken once the first one was seen to
	}
	reload()
	shown := func(pool *x509.CertPool) bool {
		c := fresh(t, "")
		c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: pool}
		resp, err := c.Get(p.URL + "/healthz")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil
	}
	if !shown(newPool) || shown(pool) {
		t.Errorf("after a reload the renewed certificate is shown: %v, the old one: %v", shown(newPool), shown(pool))
	}
	if err := os.WriteFile(cert, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	reload()
	if !shown(newPool) {
		t.Error("a damaged certificate took the place of the one in use")
	}
}

// TestLogSettings reads the table [logs], strictly.
func TestLogSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		table any
		ok    bool
	}{
		"all":       {map[string]any{"keep": "24h", "budget": map[string]any{"time": "5s", "queries": int64(2)}}, true},
		"nothing":   {map[string]any{}, true},
		"no table":  {"x", false},
		"unknown":   {map[string]any{"keeep": "24h"}, false},
		"unknown 2": {map[string]any{"budget": map[string]any{"rows": int64(1)}}, false},
		"type":      {map[string]any{"budget": map[string]any{"queries": "x"}}, false},
	} {
		var l Logs
		if err := l.Read(tt.table); (err == nil) != tt.ok {
			t.Errorf("%s: got %v", name, err)
		}
		if name == "all" && (l.Keep != 24*time.Hour || l.Budget.budget().Time != 5*time.Second || l.Budget.budget().Queries != 2 || l.Budget.budget().PerMinute != 600) {
			t.Errorf("got %+v", l)
		}
	}
}
