package embedded_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"sandbox/logs/embedded"
)

func start(t *testing.T, folder string) *embedded.Engine {
	t.Helper()
	e, err := embedded.Start(t.Context(), embedded.Options{Folder: folder, HelperDir: os.Getenv("SANDBOX_HELPER_DIR"),
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := e.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	return e
}

func client(e *embedded.Engine) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return e.Dial(ctx) }}}
}

func ask(t *testing.T, c *http.Client, sql string, settings url.Values) (int, string) {
	t.Helper()
	r, err := c.Post("http://engine/?"+settings.Encode(), "", strings.NewReader(sql))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

func TestEngine(t *testing.T) {
	e := start(t, t.TempDir())
	c := client(e)
	for _, sql := range []string{"SELECT 1", "SELECT name FROM system.columns WHERE table='otel_logs'", "SELECT * FROM file('/etc/hostname')", "SELECT file('/proc/self/cmdline')", "SELECT * FROM url('http://127.0.0.1:1/','CSV','a String')"} {
		t.Log(ask(t, c, sql, nil))
	}
}
