package httpd_test

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sandbox/api"
	"sandbox/auth"
	"sandbox/httpd"
)

// TestSubprotocols lets a browser pass its key, which it can do in no other way.
func TestSubprotocols(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create(`{}`)
	dead := s.newKey(auth.Request{Permissions: []string{api.MayUseKeys}})
	for _, c := range []struct {
		offers []string
		status int
		chosen string
	}{
		{[]string{"sandbox.v1", "bearer." + s.key}, 101, "sandbox.v1"},
		{[]string{"bearer." + s.key, "sandbox.v1"}, 101, "sandbox.v1"},
		{[]string{"bearer." + s.key}, 101, "bearer." + s.key},
		{[]string{"sandbox.v1"}, 401, ""},
		{[]string{"sandbox.v1", "bearer." + s.key[1:]}, 401, ""},
		{[]string{"sandbox.v1", "bearer." + dead}, 403, ""},
		{nil, 401, ""},
	} {
		d := websocket.Dialer{Subprotocols: c.offers}
		conn, resp, err := d.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/v1/boxes/"+id+"/attach?shell=/bin/sh", nil)
		if resp == nil || resp.StatusCode != c.status {
			t.Errorf("%d offers: %v, %v, want %d", len(c.offers), resp, err, c.status)
		}
		if conn != nil {
			if got := conn.Subprotocol(); got != c.chosen {
				t.Errorf("%d offers: %.20q was chosen", len(c.offers), got)
			}
			check(t, conn.Close())
		}
	}
	if text := s.log.String(); slices.ContainsFunc([]string{s.key, dead}, func(key string) bool { return strings.Contains(text, key) }) {
		t.Error("a key is in the log")
	}
}

// TestHangUpOnClose sends SIGHUP to the shell of a client that has gone.
func TestHangUpOnClose(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create(`{}`)
	d := websocket.Dialer{Subprotocols: []string{"sandbox.v1", "bearer." + s.key}}
	conn, _, err := d.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/v1/boxes/"+id+"/attach?shell=/bin/cat", nil)
	must(t, err)
	var ready struct {
		Type   string `json:"type"`
		ExecID string `json:"exec_id"`
	}
	must(t, conn.ReadJSON(&ready))
	check(t, conn.Close())
	box, err := s.runtime.Get(t.Context(), id)
	must(t, err)
	rec, err := box.AwaitExec(t.Context(), ready.ExecID)
	must(t, err)
	if rec.Signal == nil || *rec.Signal != 1 {
		t.Errorf("the shell ended with %+v", rec)
	}
}

// TestNoPong lets go of a client that answers no ping, and hangs its shell up.
func TestNoPong(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *httpd.Config) { c.Heartbeat = 20 * time.Millisecond })
	id := s.create(`{}`)
	d := websocket.Dialer{Subprotocols: []string{"sandbox.v1", "bearer." + s.key}}
	conn, _, err := d.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/v1/boxes/"+id+"/attach?shell=/bin/cat", nil)
	must(t, err)
	defer conn.Close()
	pings := 0
	conn.SetPingHandler(func(string) error { pings++; return nil })
	for err == nil { // until the server closes
		_, _, err = conn.ReadMessage()
	}
	if want := 4; pings != want {
		t.Errorf("%d pings, then %v; want %d pings", pings, err, want)
	}
	box, err := s.runtime.Get(t.Context(), id)
	must(t, err)
	execs, err := box.Execs(t.Context())
	must(t, err)
	rec, err := box.AwaitExec(t.Context(), execs[0].ID)
	must(t, err)
	if rec.Signal == nil || *rec.Signal != 1 {
		t.Errorf("the shell ended with %+v", rec)
	}
}

// TestLateInput writes to a command that took input and has ended, as a client does that
// attaches too late: it is told the end, and no failure.
func TestLateInput(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create(`{}`)
	exec, _ := s.ask("POST", "/v1/boxes/"+id+"/exec", `{"cmd":"head -c 16000000 /dev/zero","stdin_open":true}`).want(t, 201, "").json["id"].(string)
	s.ask("GET", "/v1/boxes/"+id+"/exec/"+exec+"/events", "").want(t, 200, "") // until it has ended
	d := websocket.Dialer{Subprotocols: []string{"sandbox.v1", "bearer." + s.key}}
	conn, resp, err := d.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/v1/boxes/"+id+"/exec/"+exec+"/attach", nil)
	must(t, err)
	defer conn.Close()
	defer resp.Body.Close()
	must(t, conn.WriteMessage(websocket.BinaryMessage, []byte("late")))
	for {
		_, message, err := conn.ReadMessage()
		must(t, err)
		if strings.Contains(string(message), `"error"`) {
			t.Fatalf("it was told %s", message)
		}
		if strings.Contains(string(message), `"exit"`) {
			return
		}
	}
}

// TestHeartbeat has a quiet stream of events say that it is alive.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *httpd.Config) { c.Heartbeat = 20 * time.Millisecond })
	id := s.create(`{}`)
	exec, _ := s.ask("POST", "/v1/boxes/"+id+"/exec", `{"cmd":["cat"],"stdin_open":true}`).want(t, 201, "").json["id"].(string)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+"/v1/boxes/"+id+"/exec/"+exec+"/events", nil)
	must(t, err)
	bearer(s.key)(req)
	resp, err := s.client.Do(req)
	must(t, err)
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for range 3 {
		if line, err := lines.ReadString('\n'); err != nil || line != ": alive\n" {
			t.Errorf("got %q, %v", line, err)
		}
		_, _ = lines.ReadString('\n')
	}
	s.ask("POST", "/v1/boxes/"+id+"/exec/"+exec+":cancel", `{"grace_ms":0}`).want(t, 200, "")
}
