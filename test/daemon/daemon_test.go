// Package daemon_test runs the server as the process that users run, with real
// boxes: what it streams, and what is left of that when it is killed.
package daemon_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"sandbox/test/leak"
	"sandbox/test/programs"
	"sandbox/test/rootfs"
)

func TestMain(m *testing.M) { leak.Main(m) }

// program is a running server on a home of its own.
type program struct {
	t      *testing.T
	home   string
	rootfs string
	flags  []string
	cmd    *exec.Cmd
	client *http.Client
}

// serve starts a server, with these flags of its own. Its boxes are removed with
// the test.
func serve(t *testing.T, flags ...string) *program {
	t.Helper()
	home, err := os.MkdirTemp("", "d") // short: a socket's name is
	must(t, err)
	p := &program{t: t, home: home, rootfs: rootfs.Busybox(t), flags: flags}
	p.client = &http.Client{Transport: &http.Transport{DialContext: p.dial, DisableKeepAlives: true}}
	p.start()
	t.Cleanup(func() {
		for _, id := range p.boxes() {
			p.ask("DELETE", "/v1/boxes/"+id+"?force=true", nil)
		}
		check(t, p.cmd.Process.Signal(os.Interrupt))
		_ = p.cmd.Wait()
		_ = os.RemoveAll(home)
	})
	return p
}

func (p *program) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(p.home, "sandbox.sock"))
}

func (p *program) start() {
	p.t.Helper()
	lines := p.launch()
	go func() { _, _ = io.Copy(io.Discard, lines) }() // ends with the server
}

// launch starts the server, and returns what it prints once it is ready.
func (p *program) launch() *bufio.Reader {
	p.t.Helper()
	p.cmd = exec.Command(filepath.Join(programs.Dir(), "sandbox"), append([]string{"serve", "--listen", "none"}, p.flags...)...)
	p.cmd.Env = append(os.Environ(), "SANDBOX_HOME="+p.home, "HOME="+p.home)
	said, err := p.cmd.StderrPipe()
	must(p.t, err)
	must(p.t, p.cmd.Start())
	lines := bufio.NewReader(said)
	for line, all := "", ""; !strings.HasPrefix(line, "sandbox: ready"); {
		line, err = lines.ReadString('\n')
		if all += line; err != nil {
			p.t.Fatalf("the server ended: %s", all)
		}
	}
	return lines
}

// importBusybox imports the root file system as the image "busybox".
func (p *program) importBusybox() {
	p.t.Helper()
	cmd := exec.Command(filepath.Join(programs.Dir(), "sandbox"), "--local", "images", "import", "busybox", p.rootfs)
	cmd.Env = append(os.Environ(), "SANDBOX_HOME="+p.home)
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
}

// kill kills the server as nothing can prevent.
func (p *program) kill() {
	p.t.Helper()
	must(p.t, p.cmd.Process.Kill())
	_ = p.cmd.Wait()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// answer is a reply, read.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (p *program) ask(method, path string, body any) answer {
	p.t.Helper()
	var r io.Reader
	if body != nil {
		doc, err := json.Marshal(body)
		must(p.t, err)
		r = bytes.NewReader(doc)
	}
	req, err := http.NewRequestWithContext(context.WithoutCancel(p.t.Context()), method, "http://box"+path, r)
	must(p.t, err)
	req.Header.Set("Content-Type", "application/json")
	return p.send(req)
}

func (p *program) send(req *http.Request) answer {
	p.t.Helper()
	resp, err := p.client.Do(req)
	must(p.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(p.t, err)
	return answer{resp.StatusCode, resp.Header, b}
}

func (a answer) want(t testing.TB, status int, code string) map[string]any {
	t.Helper()
	var m map[string]any
	_ = json.Unmarshal(a.body, &m)
	e, _ := m["error"].(map[string]any)
	if got, _ := e["code"].(string); a.status != status || got != code {
		t.Errorf("got %d %.300s, want %d %s", a.status, a.body, status, code)
	}
	return m
}

func (p *program) boxes() (ids []string) {
	p.t.Helper()
	var list struct{ Boxes []struct{ ID string } }
	must(p.t, json.Unmarshal(p.ask("GET", "/v1/boxes?page_size=1000", nil).body, &list))
	for _, box := range list.Boxes {
		ids = append(ids, box.ID)
	}
	return ids
}

// box makes a box and returns its path.
func (p *program) box() string {
	p.t.Helper()
	m := p.ask("POST", "/v1/boxes", map[string]any{"rootfs_path": p.rootfs, "network": "None"}).want(p.t, 201, "")
	id, _ := m["id"].(string)
	return "/v1/boxes/" + id
}

// exec starts a command and returns its path.
func (p *program) exec(box string, body map[string]any) string {
	p.t.Helper()
	m := p.ask("POST", box+"/exec", body).want(p.t, 201, "")
	id, _ := m["id"].(string)
	return box + "/exec/" + id
}

func (p *program) sh(box, script string) string {
	p.t.Helper()
	return p.exec(box, map[string]any{"cmd": script})
}

// event is a Server-Sent Event.
type event struct {
	kind string
	id   int64
	data map[string]any
}

// stream is an open stream of events.
type stream struct {
	t    *testing.T
	body io.Closer
	r    *bufio.Reader
}

func (p *program) events(path string, after int64) *stream {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), "GET", "http://box"+path+"/events", nil)
	must(p.t, err)
	if after > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatInt(after, 10))
	}
	resp, err := p.client.Do(req)
	must(p.t, err)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		p.t.Fatalf("events: %d %s", resp.StatusCode, resp.Header)
	}
	s := &stream{p.t, resp.Body, bufio.NewReader(resp.Body)}
	p.t.Cleanup(func() { _ = resp.Body.Close() })
	return s
}

// next returns the next event; false at the end of the stream.
func (s *stream) next() (e event, ok bool) {
	s.t.Helper()
	for {
		line, err := s.r.ReadString('\n')
		if err != nil {
			return e, false
		}
		switch name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); name {
		case "event":
			e.kind = value
		case "id":
			e.id, _ = strconv.ParseInt(value, 10, 64)
		case "data":
			must(s.t, json.Unmarshal([]byte(value), &e.data))
		case "":
			if e.kind != "" {
				return e, true
			}
		}
	}
}

// rest returns the output of all events up to the end, and the last one.
func (s *stream) rest() (out map[string]string, last event) {
	s.t.Helper()
	out = map[string]string{}
	for {
		e, ok := s.next()
		if !ok {
			return out, last
		}
		if e.kind == "log" {
			out[fmt.Sprint(e.data["stream"])] += fmt.Sprint(e.data["data"])
		}
		last = e
	}
}

// connect opens a WebSocket; resp tells why it could not be.
func (p *program) connect(path string) (*websocket.Conn, *http.Response, error) {
	d := websocket.Dialer{NetDialContext: p.dial, Subprotocols: []string{"sandbox.v1"}}
	return d.DialContext(p.t.Context(), "ws://box"+path, nil)
}

// socket opens a WebSocket that greets.
func (p *program) socket(path string) *websocket.Conn {
	p.t.Helper()
	conn, resp, err := p.connect(path)
	if err != nil {
		p.t.Fatal(err, resp)
	}
	p.t.Cleanup(func() { _ = conn.Close() })
	if conn.Subprotocol() != "sandbox.v1" {
		p.t.Errorf("subprotocol %q", conn.Subprotocol())
	}
	if m := text(p.t, conn); m["type"] != "ready" {
		p.t.Fatalf("it begins with %v", m)
	}
	return conn
}

// text reads a text frame.
func text(t *testing.T, conn *websocket.Conn) map[string]any {
	t.Helper()
	kind, b, err := conn.ReadMessage()
	must(t, err)
	var m map[string]any
	if kind != websocket.TextMessage || json.Unmarshal(b, &m) != nil {
		t.Fatalf("frame %d %.100q is no control message", kind, b)
	}
	return m
}

// shown is what a WebSocket has sent.
type shown struct {
	out   [3]string // by the first byte of an attached client's frames
	raw   string
	last  map[string]any // the last text frame
	close int
}

// show reads to the end.
func show(t *testing.T, conn *websocket.Conn) shown {
	t.Helper()
	var s shown
	for {
		kind, b, err := conn.ReadMessage()
		if err != nil {
			if e := (*websocket.CloseError)(nil); errors.As(err, &e) {
				s.close = e.Code
			}
			return s
		}
		if kind == websocket.TextMessage {
			s.last = nil
			must(t, json.Unmarshal(b, &s.last))
			continue
		}
		s.raw += string(b)
		if b[0] < 3 {
			s.out[b[0]] += string(b[1:])
		}
	}
}

func say(t *testing.T, conn *websocket.Conn, m string) {
	t.Helper()
	must(t, conn.WriteMessage(websocket.TextMessage, []byte(m)))
}

// rss returns the memory of the server.
func (p *program) rss(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	must(t, err)
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	must(t, err)
	return kib << 10
}
