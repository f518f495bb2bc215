package daemon_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandbox/test/members"

	"github.com/gorilla/websocket"
)

func TestTerminal(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	conn := p.socket(box + "/attach?cols=99&rows=31&term=vt100") // busybox has no bash: sh it is
	must(t, conn.WriteMessage(websocket.BinaryMessage, []byte("stty size; echo $TERM; stty -echo; echo ok\n")))
	await(t, conn, "31 99", "vt100", "ok")
	say(t, conn, `{"type":"resize","cols":50,"rows":12}`)
	must(t, conn.WriteMessage(websocket.BinaryMessage, []byte("stty size; echo ok\n")))
	await(t, conn, "12 50", "ok")
	must(t, conn.WriteMessage(websocket.BinaryMessage, []byte("echo a' 'b; sleep 100\n")))
	await(t, conn, "a b")
	say(t, conn, `{"type":"signal","signal":"INT"}`)
	must(t, conn.WriteMessage(websocket.BinaryMessage, []byte("echo goes on; exit 9\n")))
	s := show(t, conn)
	if !strings.Contains(s.raw, "goes on") || s.last["type"] != "exit" || s.last["exit_code"] != 9.0 || s.close != websocket.CloseNormalClosure {
		t.Errorf("got %+v", s)
	}
	conn = p.socket(box + "/attach?shell=/bin/cat")
	say(t, conn, `{"type":"eof"}`)
	if s := show(t, conn); s.last["exit_code"] != 0.0 {
		t.Errorf("eof: %+v", s)
	}
	conn = p.socket(box + "/attach?shell=/bin/none")
	if s := show(t, conn); s.last["exit_code"] != 127.0 || !strings.Contains(s.raw, "/bin/none") {
		t.Errorf("a shell that is missing: %+v", s)
	}
}

// await reads until the output has all of the texts in this order.
func await(t *testing.T, conn *websocket.Conn, texts ...string) {
	t.Helper()
	got := ""
	for _, text := range texts {
		for {
			if _, rest, ok := strings.Cut(got, text); ok {
				got = rest
				break
			}
			_, b, err := conn.ReadMessage()
			if err != nil {
				t.Fatalf("no %q in %q: %v", text, got, err)
			}
			got += string(b)
		}
	}
}

// TestTerminalRefused is answered before there is a WebSocket.
func TestTerminalRefused(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	p.ask("GET", box+"/attach", nil).want(t, 400, "malformed")
	for path, status := range map[string]int{
		"/v1/boxes/none/attach": 404, box + "/attach?cols=0": 422, box + "/attach?rows=x": 422, box + "/attach?shell=%00": 422,
		box + "/attach?cols=%": 400,
	} {
		if _, resp, err := p.connect(path); err == nil || resp.StatusCode != status {
			t.Errorf("%s: %v, %v, want %d", path, resp, err, status)
		}
	}
	p.ask("POST", box+":stop?timeout_seconds=0", nil).want(t, 200, "")
	if _, resp, err := p.connect(box + "/attach"); err == nil || resp.StatusCode != 409 {
		t.Errorf("a stopped box: %v, %v", resp, err)
	}
}

// TestHungUp ends the whole tree of a shell whose client has gone, also what
// ignores the hang-up. The shell waits for cat, not at its prompt, where BusyBox takes
// the end of a job for the end of its input while it does not echo. setsid is such a
// job, since it forks and ends.
func TestHungUp(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	conn := p.socket(box + "/attach")
	must(t, conn.WriteMessage(websocket.BinaryMessage,
		[]byte("trap '' HUP; setsid sleep 4321 & sleep 4322 & stty -echo; echo u''p; cat\n")))
	await(t, conn, "up") // the terminal's echo of the line does not have it
	start := time.Now()
	check(t, conn.Close())
	count := p.exec(box, map[string]any{
		"cmd":        `while grep -q 4[3]2 /proc/[0-9]*/cmdline 2>/dev/null; do sleep 0.05; done; echo gone`,
		"timeout_ms": 60_000, // so that what is not ended fails the test
	})
	if out, _ := p.events(count, 0).rest(); out["stdout"] != "gone\n" {
		t.Errorf("got %v", out)
	}
	if took := time.Since(start); took < 4*time.Second {
		t.Errorf("what ignores the hang-up had %v", took)
	}
}

// TestRun leaves no box behind, however it ends.
func TestRun(t *testing.T) {
	t.Parallel()
	p := serve(t)
	p.importBusybox()
	run := func(body map[string]any) map[string]any {
		body["image"], body["network"] = "busybox", "None"
		return p.ask("POST", "/v1/run", body).want(t, 200, "")
	}
	m := run(map[string]any{"cmd": "cat; echo err >&2; exit 4", "stdin": "in\n", "env": map[string]string{"A": "b"}})
	members.Equal(t, "a run", members.Of{
		"exit_code": {m["exit_code"], 4.0}, "stdout": {m["stdout"], "in\n"}, "stderr": {m["stderr"], "err\n"},
		"truncated": {m["truncated"], false}, "stdout_encoding": {m["stdout_encoding"], "utf-8"},
	})
	m = run(map[string]any{"cmd": `printf '\377'; kill -9 $$`})
	if m["stdout"] != "/w==" || m["stdout_encoding"] != "base64" || m["signal"] != 9.0 || m["exit_code"] != 137.0 {
		t.Errorf("got %v", m)
	}
	m = run(map[string]any{"cmd": `printf a; yes ä | tr -d '\n' | head -c 12000000`})
	if s, _ := m["stdout"].(string); m["truncated"] != true || len(s) != 10<<20-1 || !strings.HasSuffix(s, "ä") {
		t.Errorf("%d bytes, truncated %v", len(s), m["truncated"])
	}
	m = run(map[string]any{"cmd": "sleep 100", "timeout_ms": 50})
	if m["reason"] != "timed_out" {
		t.Errorf("got %v", m)
	}
	if left := p.boxes(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	p.hangUpRun(t)
	for len(p.boxes()) > 0 { // its going is nobody's to be told
		time.Sleep(10 * time.Millisecond)
	}
}

// hangUpRun goes away while its command runs.
func (p *program) hangUpRun(t *testing.T) {
	t.Helper()
	conn, err := p.dial(t.Context(), "", "")
	must(t, err)
	defer conn.Close()
	gate := filepath.Join(t.TempDir(), "gate")
	must(t, os.Mkdir(gate, 0o700))
	body := `{"image":"busybox","network":"None","volumes":[{"host_path":"` + gate + `","guest_path":"/gate"}],"cmd":"touch /gate/up; sleep 100"}`
	_, err = conn.Write([]byte("POST /v1/run HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body))
	must(t, err)
	for { // the command is up
		if _, err := os.Stat(filepath.Join(gate, "up")); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestTerminalKept cuts the connection of a client, and goes on behind the bytes
// that it had.
func TestTerminalKept(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	conn := p.socket(box + "/attach?shell=/bin/sh&keep=true")
	must(t, conn.WriteMessage(websocket.BinaryMessage, []byte("stty -echo; PS1=; echo u''p\n")))
	await(t, conn, "up\r\n")
	execs, _ := p.ask("GET", box+"/execs", nil).want(t, 200, "")["execs"].([]any)
	exec := box + "/exec/" + execs[0].(map[string]any)["id"].(string)
	had := p.ask("GET", exec, nil).want(t, 200, "")["stdout_bytes"].(float64)
	must(t, conn.NetConn().Close()) // without a word
	p.ask("POST", exec+":resize", map[string]any{"cols": 91, "rows": 17}).want(t, 200, "")
	for { // until the server has noticed
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://box"+exec+":write_stdin", strings.NewReader("stty size\n"))
		must(t, err)
		got := p.send(req)
		if got.status == 200 {
			break
		}
		got.want(t, 409, "invalid_state")
	}
	conn = p.socket(fmt.Sprint(exec, "/attach?after_stdout=", had))
	must(t, conn.WriteMessage(websocket.BinaryMessage, []byte("exit 6\n")))
	if s := show(t, conn); s.out[1] != "17 91\r\n" || s.last["exit_code"] != 6.0 {
		t.Errorf("%+v", s)
	}
}

// TestTerminalOutlivesDaemon goes on with a terminal when the daemon was killed, or
// ended and started again: its output is all there, once, and it can be written on.
func TestTerminalOutlivesDaemon(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	for name, end := range map[string]func(){
		"killed": p.kill,
		"ended": func() {
			must(t, p.cmd.Process.Signal(os.Interrupt))
			must(t, p.cmd.Wait())
		},
	} {
		conn := p.socket(box + "/attach?shell=/bin/sh")
		must(t, conn.WriteMessage(websocket.BinaryMessage, []byte("stty -echo; PS1=; echo u''p\n")))
		await(t, conn, "up\r\n")
		execs, _ := p.ask("GET", box+"/execs", nil).want(t, 200, "")["execs"].([]any)
		exec := box + "/exec/" + execs[0].(map[string]any)["id"].(string)
		end()
		p.start()
		before := p.ask("GET", exec, nil).want(t, 200, "")["stdout_bytes"].(float64)
		conn = p.socket(fmt.Sprint(exec, "/attach?after_stdout=", before))
		must(t, conn.WriteMessage(websocket.BinaryMessage, []byte("echo goes on; exit 6\n")))
		if s := show(t, conn); s.out[1] != "goes on\r\n" || s.last["exit_code"] != 6.0 {
			t.Errorf("%s: %+v", name, s)
		}
		if out, last := p.events(exec, 0).rest(); !strings.HasSuffix(out["stdout"], "up\r\ngoes on\r\n") || last.data["stdout_bytes"] != before+9 {
			t.Errorf("%s: %q, %v", name, out["stdout"], last)
		}
	}
}
