package daemon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sandbox/core/local"
	"sandbox/core/options"
	"sandbox/test/programs"
)

func TestExec(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	path := p.sh(box, `echo out; echo err >&2; printf '\377'; exit 3`)
	out, last := p.events(path, 0).rest()
	if out["stderr"] != "err\n" || last.kind != "exit" || last.data["exit_code"] != 3.0 || last.data["status"] != "failed" {
		t.Errorf("got %v, last %v", out, last)
	}
	m := p.ask("GET", path, nil).want(t, 200, "")
	if m["stdout_bytes"] != 5.0 || m["stderr_bytes"] != 4.0 || m["status"] != "failed" || m["finished_at"] == nil {
		t.Errorf("record %v", m)
	}
	if s := show(t, p.socket(path+"/attach")); s.out[1] != "out\n\xff" || s.out[2] != "err\n" || s.close != 1000 || s.last["exit_code"] != 3.0 {
		t.Errorf("attached: %+v", s)
	}
	if s := show(t, p.socket(path+"/attach?after_stdout=4&after_stderr=1")); s.out[1] != "\xff" || s.out[2] != "rr\n" {
		t.Errorf("attached behind a part: %+v", s)
	}
	missing := p.exec(box, map[string]any{"cmd": []string{"nothing-of-that-name"}})
	out, last = p.events(missing, 0).rest()
	if last.data["exit_code"] != 127.0 || last.data["reason"] != "not_found" || !strings.Contains(out["stderr"], "nothing-of-that-name") {
		t.Errorf("a missing command: %v %v", out, last)
	}
	p.ask("POST", path+":cancel", nil).want(t, 409, "invalid_state")
	sleeper := p.sh(box, "trap '' TERM; echo set; sleep 100 & wait; sleep 100")
	for p.ask("GET", sleeper, nil).want(t, 200, "")["stdout_bytes"] != 4.0 { // a cancel before the trap is set would end it
		time.Sleep(5 * time.Millisecond)
	}
	m = p.ask("POST", sleeper+":cancel", map[string]any{"grace_ms": 50}).want(t, 200, "")
	if m["status"] != "canceled" || m["exit_code"] != 137.0 || m["signal"] != 9.0 {
		t.Errorf("canceled: %v", m)
	}
	fed := p.exec(box, map[string]any{"cmd": []string{"cat"}, "stdin": "whole input"})
	if out, _ := p.events(fed, 0).rest(); out["stdout"] != "whole input" {
		t.Errorf("fed: %q", out)
	}
}

// TestSilent wants the head of a stream of events before there is an event: with
// the first one it would come too late for a client that waits for it.
func TestSilent(t *testing.T) {
	t.Parallel()
	p := serve(t)
	path := p.exec(p.box(), map[string]any{"cmd": []string{"cat"}, "stdin_open": true})
	events := p.events(path, 0)
	conn := p.socket(path + "/attach")
	must(t, conn.WriteMessage(websocket.BinaryMessage, []byte("fed")))
	if e, ok := events.next(); !ok || e.data["data"] != "fed" {
		t.Errorf("got %v", e)
	}
	must(t, conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"eof"}`)))
	if _, last := events.rest(); last.data["exit_code"] != 0.0 {
		t.Errorf("ends with %v", last)
	}
}

// TestExecsListed wants all execs of a box, those of a library's user too,
// page by page.
func TestExecsListed(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	var want []string
	for i := range 5 {
		path := p.sh(box, fmt.Sprint("echo ", i))
		p.events(path, 0).rest()
		want = append([]string{path[strings.LastIndex(path, "/")+1:]}, want...)
	}
	host, err := local.Open(local.Config{Home: p.home, HelperDir: programs.Dir()})
	must(t, err)
	defer host.Close(t.Context())
	b, err := host.Get(t.Context(), strings.TrimPrefix(box, "/v1/boxes/"))
	must(t, err)
	command, err := b.Exec(t.Context(), options.Exec{Cmd: []string{"sleep", "100"}})
	must(t, err)
	defer command.Close()
	want = append([]string{command.ID()}, want...)
	var got []string
	for next := ""; ; {
		var page struct {
			Execs []struct{ ID string }
			Next  *string `json:"next_page_token"`
		}
		a := p.ask("GET", box+"/execs?page_size=4&page_token="+next, nil)
		a.want(t, 200, "")
		must(t, json.Unmarshal(a.body, &page))
		for _, e := range page.Execs {
			got = append(got, e.ID)
		}
		if page.Next == nil {
			break
		}
		next = *page.Next
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	others := box + "/exec/" + command.ID()
	if m := p.ask("GET", others, nil).want(t, 200, ""); m["status"] != "running" || m["stdout_bytes"] != nil {
		t.Errorf("another's exec: %v", m)
	}
	for _, stream := range []string{"/events", "/attach"} {
		a := p.ask("GET", others+stream, nil)
		a.want(t, 409, "invalid_state")
		for _, says := range []string{command.ID(), "another program", "start the command through this server"} {
			if !strings.Contains(string(a.body), says) {
				t.Errorf("%s does not say %q: %s", stream, says, a.body)
			}
		}
	}
	if m := p.ask("POST", others+":cancel", nil).want(t, 200, ""); m["status"] != "canceled" {
		t.Errorf("another's exec: %v", m)
	}
	for _, id := range []string{"exec_aaaaaaaaaaaaaaaaaaaa", "nonsense", "exec_..%2f..%2fx", strings.Repeat("x", 5000)} {
		p.ask("GET", box+"/exec/"+id, nil).want(t, 404, "exec_not_found")
		p.ask("GET", box+"/exec/"+id+"/events", nil).want(t, 404, "exec_not_found")
		p.ask("POST", box+"/exec/"+id+":cancel", nil).want(t, 404, "exec_not_found")
	}
}

func TestAttachInput(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	path := p.exec(box, map[string]any{"cmd": `read x; echo "got $x" >&2; cat; echo end`, "stdin_open": true})
	conn := p.socket(path + "/attach")
	if _, resp, err := p.connect(path + "/attach"); err == nil || resp.StatusCode != 409 {
		t.Error("a second client attached:", err)
	}
	must(t, conn.WriteMessage(websocket.BinaryMessage, []byte("one\n\x00\xff")))
	must(t, conn.WriteMessage(websocket.BinaryMessage, []byte(strings.Repeat("y", 300_000))))
	say(t, conn, `{"type":"eof"}`)
	if s := show(t, conn); s.out[2] != "got one\n" || s.out[1] != "\x00\xff"+strings.Repeat("y", 300_000)+"end\n" || s.last["type"] != "exit" {
		t.Errorf("%d and %d bytes, last %v", len(s.out[1]), len(s.out[2]), s.last)
	}
	tty := p.exec(box, map[string]any{"cmd": "stty size; read x; stty size; echo $x", "tty": true, "cols": 90, "rows": 20})
	conn = p.socket(tty + "/attach")
	say(t, conn, `{"type":"resize","cols":70,"rows":30}`)
	must(t, conn.WriteMessage(websocket.BinaryMessage, []byte("typed\n")))
	if s := show(t, conn); !strings.Contains(s.out[1], "30 70") || !strings.HasSuffix(s.out[1], "typed\r\n") {
		t.Errorf("a terminal shows %q", s.out[1])
	}
	stopped := p.sh(box, "trap 'echo usr1; exit 7' USR1; echo on; while :; do sleep 0.01; done")
	conn = p.socket(stopped + "/attach")
	if _, b, err := conn.ReadMessage(); err != nil || string(b) != "\x01on\n" {
		t.Errorf("got %q, %v", b, err)
	}
	say(t, conn, `{"type":"signal","signal":"USR1"}`)
	if s := show(t, conn); s.out[1] != "usr1\n" || s.last["exit_code"] != 7.0 {
		t.Errorf("a signal: %+v", s)
	}
}

// TestSocketNonsense ends the connection with an error, and not the command.
func TestSocketNonsense(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	var path string
	for _, c := range []struct {
		name, code string
		kind       int
		frame      string
	}{
		{"unknown type", "invalid_argument", websocket.TextMessage, `{"type":"dance"}`},
		{"unknown member", "malformed", websocket.TextMessage, `{"type":"eof","x":1}`},
		{"no JSON", "malformed", websocket.TextMessage, `eof`},
		{"empty", "malformed", websocket.TextMessage, ``},
		{"deep", "malformed", websocket.TextMessage, strings.Repeat("[", 10_000)},
		{"too large", "too_large", websocket.TextMessage, `{"type":"` + strings.Repeat("x", 100_000) + `"}`},
		{"no terminal", "invalid_argument", websocket.TextMessage, `{"type":"resize","cols":80,"rows":24}`},
		{"size", "invalid_argument", websocket.TextMessage, `{"type":"resize","cols":0,"rows":70000}`},
		{"no signal", "invalid_argument", websocket.TextMessage, `{"type":"signal","signal":"BANG"}`},
		{"no input", "invalid_argument", websocket.BinaryMessage, "x"},
	} {
		path = p.sh(box, "sleep 100")
		conn := p.socket(path + "/attach")
		if err := conn.WriteMessage(c.kind, []byte(c.frame)); !errors.Is(err, syscall.EPIPE) { // the server needs not read all of it
			must(t, err)
		}
		if s := show(t, conn); s.last["type"] != "error" || s.last["code"] != c.code || s.close != 1011 {
			t.Errorf("%s: %+v", c.name, s)
		}
		if m := p.ask("GET", path, nil).want(t, 200, ""); m["status"] != "running" {
			t.Errorf("%s: the command: %v", c.name, m)
		}
	}
	path = p.sh(box, "sleep 100")
	p.ask("GET", path+"/attach", nil).want(t, 400, "malformed")
	p.ask("GET", path+"/attach?after_stdout=-1", nil).want(t, 422, "invalid_argument")
	conn := p.socket(path + "/attach")
	// The head of a frame of 1 GiB, which can't come.
	_, err := conn.NetConn().Write([]byte{0x82, 0xff, 0, 0, 0, 0, 0x40, 0, 0, 0, 1, 2, 3, 4})
	must(t, err)
	if s := show(t, conn); s.close != 1009 && s.close != 1011 {
		t.Errorf("a frame of 1 GiB: %+v", s)
	}
	if m := p.ask("GET", path, nil).want(t, 200, ""); m["status"] != "running" {
		t.Errorf("the command: %v", m)
	}
}

// TestEnded sends streams their exit when the box goes, by stop and by force.
func TestEnded(t *testing.T) {
	t.Parallel()
	p := serve(t)
	for _, c := range []struct{ method, path, reason string }{
		{"POST", ":stop?timeout_seconds=0", "box_stopped"},
		{"DELETE", "?force=true", "box_stopped"},
	} {
		box := p.box()
		path := p.sh(box, "echo on; sleep 100")
		events := p.events(path, 0)
		if e, ok := events.next(); !ok || e.data["data"] != "on\n" {
			t.Fatalf("got %v", e)
		}
		conn := p.socket(path + "/attach")
		p.ask(c.method, box+c.path, nil).want(t, 200, "")
		if _, last := events.rest(); last.kind != "exit" || last.data["status"] != "failed" || last.data["reason"] != c.reason {
			t.Errorf("%s: events end with %v", c.method, last)
		}
		if s := show(t, conn); s.last["type"] != "exit" {
			t.Errorf("%s: attached: %+v", c.method, s)
		}
		if c.method == "DELETE" {
			p.ask("GET", path, nil).want(t, 404, "box_not_found")
		} else if m := p.ask("GET", path, nil).want(t, 200, ""); m["status"] != "failed" || m["reason"] != "box_stopped" {
			t.Errorf("of a stopped box: %v", m)
		}
	}
}
