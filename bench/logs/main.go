// Command logs measures the log service beside the engine that it queries. It
// runs the same statements in turns, through the daemon and on the engine's own
// socket.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// lab holds a daemon of ours with its engine, and connections to both.
type lab struct {
	build, home string
	rows        int
	crowd       time.Duration
	daemon      *exec.Cmd
	ended       chan struct{} // closed when the daemon has ended
	failure     error         // the reason for the daemon's end; valid once ended is closed
	gateway     *http.Client
	engine      *http.Client
	end         time.Time // of the generated rows
}

func main() {
	l := &lab{}
	flag.StringVar(&l.build, "build", "build", "`DIR` of the programs")
	flag.IntVar(&l.rows, "rows", 20_000_000, "rows to generate")
	flag.DurationVar(&l.crowd, "crowd", time.Minute, "how long 50 clients ask")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := l.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (l *lab) run(ctx context.Context) error {
	if err := l.start(ctx); err != nil {
		return err
	}
	defer l.stop()
	for _, part := range []func(context.Context) error{l.generate, l.latency, l.throughput, l.searches, l.ingest, l.together} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// config is the daemon's configuration. With it no bound affects the
// measurements, except the one on the queries that run at once.
const config = `
[logs]
keep = "720h"
[logs.budget]
queries = 8
queries_per_minute = 100000000
`

func (l *lab) start(ctx context.Context) error {
	dir, err := filepath.Abs(l.build)
	if err != nil {
		return err
	}
	if l.home, err = os.MkdirTemp(dir, "bench-logs-"); err != nil {
		return err
	}
	file := filepath.Join(l.home, "serve.toml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	l.daemon = exec.CommandContext(ctx, filepath.Join(dir, "sandbox"), "serve", "--listen", "none", "--config", file)
	l.daemon.Env = append(os.Environ(), "SANDBOX_HOME="+l.home, "HOME="+l.home, "SANDBOX_HELPER_DIR="+dir)
	var said bytes.Buffer
	l.daemon.Stderr = &said
	l.daemon.Cancel = func() error { return l.daemon.Process.Signal(os.Interrupt) }
	if err := l.daemon.Start(); err != nil {
		return err
	}
	l.ended = make(chan struct{})
	go func() {
		defer close(l.ended)
		l.failure = l.daemon.Wait()
	}()
	l.gateway = socketClient(filepath.Join(l.home, "sandbox.sock"))
	l.engine = socketClient(filepath.Join(l.home, "logs", "socket"))
	for { // unlike the daemon, the engine does not report when it listens
		if _, err := l.raw(ctx, "SELECT 1"); err == nil {
			if _, err = l.ask(ctx, "query", map[string]any{"sql": "SELECT 1"}); err == nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.ended:
			return fmt.Errorf("the daemon ended: %w: %s", l.failure, said.String())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (l *lab) stop() {
	_ = l.daemon.Process.Signal(os.Interrupt)
	<-l.ended
	_ = os.RemoveAll(l.home)
}

func socketClient(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}}
}

// raw runs a statement directly on the engine's own interface.
func (l *lab) raw(ctx context.Context, sql string) ([]byte, error) {
	return post(ctx, l.engine, "http://engine/", "", []byte(sql))
}

// ask sends a request to the gateway, and returns the document of its reply.
func (l *lab) ask(ctx context.Context, path string, body any) ([]byte, error) {
	doc, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return post(ctx, l.gateway, "http://gateway/v1/observability/"+path, "application/json", doc)
}

// status is the error for a reply that is no success.
type status struct {
	code   int
	header http.Header
	text   string
}

func (s *status) Error() string { return fmt.Sprintf("%d: %s", s.code, s.text) }

func post(ctx context.Context, c *http.Client, url, kind string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", kind)
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = &status{resp.StatusCode, resp.Header, string(text[:min(len(text), 500)])}
	}
	return text, err
}

// median returns the median of some times.
func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// memory returns the peak memory of the daemon and of its engine, in MiB.
func (l *lab) memory() string {
	peak := func(pid string) string {
		text, _ := os.ReadFile("/proc/" + pid + "/status")
		_, rest, _ := strings.Cut(string(text), "VmHWM:")
		line, _, _ := strings.Cut(rest, "\n")
		return strings.TrimSpace(line)
	}
	daemon := fmt.Sprint(l.daemon.Process.Pid)
	children, _ := os.ReadFile("/proc/" + daemon + "/task/" + daemon + "/children")
	out := "daemon " + peak(daemon)
	threads, _ := filepath.Glob("/proc/" + daemon + "/task/*/children")
	for _, t := range threads {
		if text, err := os.ReadFile(t); err == nil && t != "/proc/"+daemon+"/task/"+daemon+"/children" {
			children = append(append(children, ' '), text...)
		}
	}
	for _, child := range strings.Fields(string(children)) {
		out += ", engine " + peak(child)
	}
	return out
}
