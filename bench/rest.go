package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
)

// service is a server of ours on the same home, asked through its Unix socket.
type service struct {
	b      *bench
	daemon *conversation
	client *http.Client
	why    string
}

// startService starts it. If that fails its rows say so.
func startService(b *bench) *service {
	s := &service{b: b, why: b.ours.why}
	s.client = &http.Client{Transport: &http.Transport{DialContext: s.dial}}
	if s.why != "" {
		return s
	}
	program := filepath.Join(b.tools, "sandbox")
	// It says that it is ready on stderr, which conversations pass on.
	script := `SANDBOX_HOME="$1" exec "$0" serve --listen none 2>&1 | { grep -q "^sandbox: ready" && echo ready; cat >/dev/null; }`
	var err error
	if s.daemon, err = converse(command{args: []string{"/bin/sh", "-c", script, program, b.ours.home}}); err != nil {
		s.why = err.Error()
	}
	return s
}

func (s *service) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(s.b.ours.home, "sandbox.sock"))
}

func (s *service) close() error {
	s.client.CloseIdleConnections()
	if s.daemon == nil {
		return nil
	}
	_ = syscall.Kill(-s.daemon.cmd.Process.Pid, syscall.SIGINT)
	_ = s.daemon.close() // ended by that signal
	return nil
}

func (s *service) contestant(name string, run func(context.Context) error) contestant {
	return s.b.ours.named(name, s.why, func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		err := run(ctx)
		return time.Since(start), err
	})
}

// named is a contestant of ours under another name.
func (o *ours) named(name, why string, run func(context.Context) (time.Duration, error)) contestant {
	c := o.contestant(run)
	c.name, c.why = name, why
	return c
}

// post sends a JSON body and reads the JSON reply into to.
func (s *service) post(ctx context.Context, path string, body, to any) error {
	doc, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://box"+path, bytes.NewReader(doc))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if doc, err = io.ReadAll(resp.Body); err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s: %d %s", path, resp.StatusCode, doc)
	}
	return errors.Join(err, json.Unmarshal(doc, to))
}

// exec starts a command and gives its path.
func (s *service) exec(ctx context.Context, box string, args ...string) (string, error) {
	var e struct{ ID string }
	err := s.post(ctx, "/v1/boxes/"+box+"/exec", map[string]any{"cmd": args}, &e)
	return "/v1/boxes/" + box + "/exec/" + e.ID, err
}

// follow reads a command's events to its exit.
func (s *service) follow(ctx context.Context, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://box"+path+"/events", nil)
	if err != nil {
		return err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && !strings.Contains(string(text), `"exit_code":0`) {
		err = fmt.Errorf("events: %.200s", text)
	}
	return err
}

// measureRestExec runs commands over REST beside the same in process.
func measureRestExec(ctx context.Context, b *bench) ([]row, error) {
	r, s := b.startAll(ctx), startService(b)
	over := s.contestant("ours, REST", func(ctx context.Context) error {
		path, err := s.exec(ctx, r.box.ID(), hello...)
		return errors.Join(err, s.follow(ctx, path))
	})
	all := b.interleave(ctx, append(r.contestants(hello...)[:2], over)...)
	return rows(millis, all, bar{contestant: "ours, REST", peer: "crun", percentile: 50, limit: 0.75}), errors.Join(s.close(), r.close(ctx))
}

// measureRun runs a box's whole life over REST beside the same in process.
func measureRun(ctx context.Context, b *bench) ([]row, error) {
	s := startService(b)
	all := b.interleave(ctx, b.ours.contestant(func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		box, err := b.ours.create(ctx)
		if err != nil {
			return 0, err
		}
		_, err = b.ours.exec(ctx, box, hello...)
		return time.Since(start), errors.Join(err, b.ours.remove(ctx, box))
	}), s.contestant("ours, REST", func(ctx context.Context) error {
		var out struct{ Stdout string }
		err := s.post(ctx, "/v1/run", map[string]any{"rootfs_path": b.rootfs, "cpus": 1, "cmd": hello}, &out)
		if err == nil && out.Stdout != "hi\n" {
			err = fmt.Errorf("a run said %q", out.Stdout)
		}
		return err
	}))
	return rows(millis, all, bar{contestant: "ours, REST", peer: "ours", percentile: 50, limit: 1.4}), s.close()
}

// measureAttach streams a command's output to an attached client, beside a
// bare HTTP server that sends as much.
func measureAttach(ctx context.Context, b *bench) ([]row, error) {
	r, s := b.startAll(ctx), startService(b)
	attached := s.contestant("ours, attached", func(ctx context.Context) error {
		path, err := s.exec(ctx, r.box.ID(), producer, strconv.Itoa(streamed))
		if err != nil {
			return err
		}
		return s.attach(ctx, path)
	})
	shown := pace{rounds: min(b.rounds, streamRounds)}.interleave(ctx, attached, bareHTTP(filepath.Join(b.dir, "bare")))
	rate := unit{"MB/s", func(d time.Duration) float64 { return streamed / d.Seconds() / 1e6 }}
	return rows(rate, shown, bar{contestant: "ours, attached", peer: "bare net/http", percentile: 50, limit: 0.3, rate: true}), errors.Join(s.close(), r.close(ctx))
}

// attach reads a command's output to its exit.
func (s *service) attach(ctx context.Context, path string) error {
	d := websocket.Dialer{NetDialContext: s.dial, ReadBufferSize: bufferSize}
	conn, _, err := d.DialContext(ctx, "ws://box"+path+"/attach", nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	var sum int64
	for buf := make([]byte, bufferSize); ; {
		kind, frame, err := conn.NextReader()
		if err != nil {
			break
		}
		n, _ := io.CopyBuffer(struct{ io.Writer }{io.Discard}, frame, buf)
		if kind == websocket.BinaryMessage {
			sum += n - 1
		}
	}
	if sum != streamed {
		return fmt.Errorf("%d bytes came, not %d", sum, streamed)
	}
	return nil
}

// bareHTTP is a handler of net/http that sends as much from memory.
func bareHTTP(socket string) contestant {
	return contestant{name: "bare net/http", isolation: "none", run: func(ctx context.Context) (time.Duration, error) {
		l, err := net.Listen("unix", socket)
		if err != nil {
			return 0, err
		}
		server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			buf := make([]byte, bufferSize)
			for range streamed / bufferSize {
				_, _ = w.Write(buf)
			}
		})}
		go func() { _ = server.Serve(l) }()
		defer server.Close()
		client := &http.Client{Transport: &http.Transport{ReadBufferSize: bufferSize, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}
		defer client.CloseIdleConnections()
		start := time.Now()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://bare/", nil)
		if err != nil {
			return 0, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, resp.Body, make([]byte, bufferSize))
		if err == nil && n != streamed {
			err = os.ErrInvalid
		}
		return time.Since(start), err
	}}
}
