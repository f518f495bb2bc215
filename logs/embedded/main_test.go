package embedded_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"

	"sandbox/logs/clickhouse"
	"sandbox/logs/embedded"
	"sandbox/test/leak"
	"sandbox/test/programs"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("TEST_DAEMON_FOLDER"); dir != "" {
		daemon(dir)
	}
	leak.Main(m)
}

// pids is a log handler that sends on the pid of each child that answers.
type pids struct {
	slog.Handler
	pid chan int
}

func (p pids) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "pid" {
			p.pid <- int(a.Value.Int64())
		}
		return true
	})
	return nil
}

func (p pids) Enabled(context.Context, slog.Level) bool { return true }

func options(dir string) (embedded.Options, chan int) {
	pid := make(chan int, 100)
	return embedded.Options{Dir: dir, HelperDir: programs.Dir(), Logger: slog.New(pids{slog.DiscardHandler, pid})}, pid
}

// engine starts an engine and waits until it answers.
func engine(t *testing.T, dir string) (*embedded.Engine, chan int) {
	t.Helper()
	o, pid := options(dir)
	e, err := embedded.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	wait(t, e)
	return e, pid
}

func wait(t *testing.T, e *embedded.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := e.Wait(ctx); err != nil {
		t.Fatal(err)
	}
}

func driver(t *testing.T, e *embedded.Engine) *clickhouse.Client {
	t.Helper()
	c, err := clickhouse.Dial(e.Dial)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// web returns a client that talks to the engine directly.
func web(t *testing.T, e *embedded.Engine) *http.Client {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return e.Dial(ctx) }}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
