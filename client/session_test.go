package client

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sandbox/core/fault"
)

// say starts a server that sends frames to each client that attaches, and then
// waits until the connection ends.
func say(t *testing.T, frames ...string) *Client {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		var up websocket.Upgrader
		ws, err := up.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer ws.Close()
		for _, frame := range frames {
			kind := websocket.BinaryMessage
			if strings.HasPrefix(frame, "{") || strings.HasPrefix(frame, "text") {
				kind = websocket.TextMessage
			}
			if ws.WriteMessage(kind, []byte(frame)) != nil {
				return
			}
		}
		_, _, _ = ws.ReadMessage()
	})
}

func TestSession(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", frame)
	for name, c := range map[string]struct {
		frames []string
		kind   fault.Kind
		out    string
		code   int // -1: none
	}{
		"an exit":         {[]string{`{"type":"ready"}`, "\x01a", "\x02b", `{"type":"later"}`, `{"type":"exit","exit_code":3,"signal":null}`}, 0, "ab", 3},
		"a lost one":      {[]string{`{"type":"exit","exit_code":null,"signal":null}`}, fault.Engine, "", -1},
		"large frames":    {[]string{"\x01" + long, `{"type":"exit","exit_code":0}`}, 0, long, 0},
		"an error":        {[]string{`{"type":"error","code":"invalid_state","message":"no input"}`}, fault.InvalidState, "", -1},
		"no stream":       {[]string{"\x03a"}, fault.Upstream, "", -1},
		"an empty frame":  {[]string{""}, fault.Upstream, "", -1},
		"garbage":         {[]string{"text"}, fault.Upstream, "", -1},
		"larger ones":     {[]string{"\x01" + long + long + "y", `{"type":"exit","exit_code":0}`}, 0, long + long + "y", 0},
		"text, too large": {[]string{"text" + strings.Repeat("x", maxControl)}, fault.Upstream, "", -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := say(t, c.frames...).Attach(t.Context(), "a", "exec_a", AttachOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var out strings.Builder
			end, err := s.Stream(t.Context(), func(_ bool, p []byte) error { out.Write(p); return nil })
			if c.kind != 0 && !fault.Is(err, c.kind) || c.kind == 0 && err != nil || out.String() != c.out {
				t.Errorf("%v, %d bytes", err, out.Len())
			}
			if c.code >= 0 && (end.ExitCode == nil || *end.ExitCode != c.code) || c.code < 0 && end.ExitCode != nil {
				t.Errorf("end %+v", end)
			}
		})
	}
}

// TestSessionMissed has a server tell an observer where its streams go on.
func TestSessionMissed(t *testing.T) {
	t.Parallel()
	s, err := say(t, `{"type":"ready","stdout_from":3}`, "\x01abc", `{"type":"gap","stdout_from":100,"stderr_from":7}`, "\x01def", `{"type":"exit","exit_code":0}`).
		Attach(t.Context(), "a", "exec_a", AttachOptions{Observe: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out strings.Builder
	sink := func(_ bool, p []byte) error { out.Write(p); return nil }
	var missed Missed
	if _, err := s.Stream(t.Context(), sink); !errors.As(err, &missed) || missed != (Missed{Stdout: 100, Stderr: 7}) || out.String() != "abc" {
		t.Errorf("%q, %v", out.String(), err)
	}
	if end, err := s.Stream(t.Context(), sink); err != nil || *end.ExitCode != 0 || out.String() != "abcdef" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestSessionEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s, err := say(t, "\x01a").Attach(t.Context(), "a", "exec_a", AttachOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := s.Stream(ctx, func(bool, []byte) error { cancel(); return nil }); !fault.Is(err, fault.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestSessionIsRefused(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			t.Error("no key")
		}
		w.WriteHeader(409)
		_, _ = w.Write([]byte(`{"error":{"code":"invalid_state","message":"another client is attached"}}`))
	})
	if _, err := c.Attach(t.Context(), "a", "exec_a", AttachOptions{AfterStdout: 7}); !fault.Is(err, fault.InvalidState) {
		t.Errorf("%v", err)
	}
	if _, err := c.Terminal(t.Context(), "a", TerminalOptions{Shell: "/bin/sh"}); !fault.Is(err, fault.InvalidState) {
		t.Errorf("%v", err)
	}
}

// TestSessionStaysAlive: a session that nobody reads says that it is there.
func TestSessionStaysAlive(t *testing.T) {
	t.Parallel()
	pongs, heard := 0, make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var up websocket.Upgrader
		ws, err := up.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer ws.Close()
		ws.SetPongHandler(func(string) error {
			if pongs++; pongs == 3 {
				close(heard)
			}
			return nil
		})
		_, _, _ = ws.ReadMessage()
	})
	c.alive = time.Millisecond
	s, err := c.Attach(t.Context(), "a", "exec_a", AttachOptions{})
	if err != nil {
		t.Fatal(err)
	}
	<-heard
	_ = s.Close()
}
