package httpd_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// shown is a WebSocket of a terminal or of an attachment.
type shown struct {
	*websocket.Conn
	t      *testing.T
	tagged bool // frames of output begin with the number of their stream
	ready  struct {
		ExecID string `json:"exec_id"`
		From   int64  `json:"stdout_from"`
	}
	out  string // since the last expect
	last map[string]any
}

// terminal opens a shell without a prompt.
func (s *service) terminal(box string) *shown {
	s.t.Helper()
	return s.connect("/v1/boxes/"+box+"/attach?shell=/bin/sh", false)
}

// attach attaches to an exec; query begins with "?" or is empty.
func (s *service) attach(exec, query string) *shown {
	s.t.Helper()
	return s.connect(exec+"/attach"+query, true)
}

func (s *service) connect(path string, tagged bool) *shown {
	s.t.Helper()
	d := websocket.Dialer{Subprotocols: []string{"sandbox.v1", "bearer." + s.key}}
	conn, _, err := d.DialContext(s.t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+path, nil)
	must(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	c := &shown{Conn: conn, t: s.t.(*testing.T), tagged: tagged}
	must(s.t, conn.ReadJSON(&c.ready))
	return c
}

// quietTerminal returns a terminal on a new box, whose shell shows nothing but
// what commands print; the path of its exec, and what it has shown.
func (s *service) quietTerminal() (c *shown, exec, seen string) {
	s.t.Helper()
	box := s.create(`{}`)
	c = s.terminal(box)
	c.typ("stty -echo; PS1=; echo o''n\n")
	return c, "/v1/boxes/" + box + "/exec/" + c.ready.ExecID, c.expect("on\r\n")
}

func (c *shown) typ(keys string) {
	c.t.Helper()
	must(c.t, c.WriteMessage(websocket.BinaryMessage, []byte(keys)))
}

// one reads a frame; it returns false at the end.
func (c *shown) one() bool {
	c.t.Helper()
	kind, p, err := c.ReadMessage()
	switch {
	case err != nil:
		return false
	case kind == websocket.TextMessage:
		must(c.t, json.Unmarshal(p, &c.last))
	case c.tagged:
		c.out += string(p[1:])
	default:
		c.out += string(p)
	}
	return true
}

// expect reads until text was shown since the last expect, and returns what came
// up to its end.
func (c *shown) expect(text string) string {
	c.t.Helper()
	for !strings.Contains(c.out, text) {
		if !c.one() {
			c.t.Fatalf("want %q, saw %q, last %v", text, c.out, c.last)
		}
	}
	before, after, _ := strings.Cut(c.out, text)
	c.out = after
	return before + text
}

// rest reads to the end.
func (c *shown) rest() string {
	c.t.Helper()
	for c.one() {
	}
	return c.out
}

// observer reads the events of an exec.
type observer struct {
	t     *testing.T
	lines *bufio.Reader
	out   string
	exit  map[string]any
}

func (s *service) observe(exec, query string) *observer {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), "GET", s.url+exec+"/events"+query, nil)
	must(s.t, err)
	bearer(s.key)(req)
	resp, err := s.client.Do(req)
	must(s.t, err)
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	return &observer{t: s.t.(*testing.T), lines: bufio.NewReader(resp.Body)}
}

// until reads until text was shown, or to the exit.
func (o *observer) until(text string) string {
	o.t.Helper()
	for o.exit == nil && (text == "" || !strings.Contains(o.out, text)) {
		line, err := o.lines.ReadString('\n')
		if err != nil {
			o.t.Fatalf("want %q, saw %q: %v", text, o.out, err)
		}
		doc, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var data map[string]any
		must(o.t, json.Unmarshal([]byte(doc), &data))
		if part, ok := data["data"].(string); ok {
			o.out += part
		} else {
			o.exit = data
		}
	}
	return o.out
}

// TestObservedTerminal has a terminal's exec watched, by its events and by an
// attachment, while its own client writes, and read when it has ended.
func TestObservedTerminal(t *testing.T) {
	t.Parallel()
	s := start(t)
	box := s.create(`{}`)
	own := s.terminal(box)
	exec := "/v1/boxes/" + box + "/exec/" + own.ready.ExecID
	events, beside := s.observe(exec, ""), s.attach(exec, "")
	own.typ("stty -echo; PS1=; echo o''n\n")
	seen := own.expect("on\r\n")
	if got := beside.expect("on\r\n"); got != seen {
		t.Errorf("beside it %q, itself %q", got, seen)
	}
	if got := events.until("on\r\n"); got != seen {
		t.Errorf("events %q, itself %q", got, seen)
	}
	must(t, beside.WriteMessage(websocket.TextMessage, []byte(`{"type":"resize","cols":5,"rows":5}`))) // ignored
	beside.typ("exit 3\n")
	if beside.rest(); beside.last["type"] != "error" || beside.last["code"] != "invalid_state" {
		t.Errorf("writing beside the terminal's client: %v", beside.last)
	}
	own.typ("stty size; i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done; exit 9\n")
	seen += own.rest()
	if own.last["exit_code"] != 9.0 || !strings.Contains(seen, "24 80\r\n") || !strings.HasSuffix(seen, "line 4999\r\n") {
		t.Errorf("it ends with %v after %d bytes", own.last, len(seen))
	}
	if got := events.until(""); got != seen || events.exit["exit_code"] != 9.0 || events.exit["stdout_bytes"] != float64(len(seen)) {
		t.Errorf("events: %d bytes of %d, %v", len(got), len(seen), events.exit)
	}
	late := s.attach(exec, "?after_stdout=1000")
	if got := late.rest(); got != seen[1000:] || late.ready.From != 1000 || late.last["exit_code"] != 9.0 {
		t.Errorf("late: %d bytes from %d, %v", len(got), late.ready.From, late.last)
	}
	if got := s.observe(exec, "").until(""); got != seen {
		t.Errorf("replayed: %d bytes of %d", len(got), len(seen))
	}
}

// TestDetachedUnread: who detaches says how far it has read, and the next client goes
// on there, whatever else was on its way. It can say no more than it was sent.
func TestDetachedUnread(t *testing.T) {
	t.Parallel()
	s := start(t)
	c, exec, seen := s.quietTerminal()
	for _, round := range []struct {
		had  string
		from int64
	}{{"3", 3}, {"0", 3}, {"1000000", int64(len(seen))}, {"0", int64(len(seen))}} {
		must(t, c.WriteMessage(websocket.TextMessage, []byte(`{"type":"detach","stdout":`+round.had+`,"stderr":0}`)))
		c.rest()
		c = s.attach(exec, "?resume=true")
		if c.ready.From != round.from {
			t.Errorf("a client that had %s: the next one goes on at %d, want %d", round.had, c.ready.From, round.from)
		}
		if round.from < int64(len(seen)) {
			c.expect("on\r\n")
		}
	}
	c.typ("kill -9 $$\n")
	if c.rest(); c.last["status"] != "failed" || c.last["reason"] != "signaled" || c.last["signal"] != 9.0 {
		t.Errorf("it ends with %v", c.last)
	}
}

// TestDetached leaves a terminal, and goes on with it where it was left.
func TestDetached(t *testing.T) {
	t.Parallel()
	s := start(t)
	c, exec, seen := s.quietTerminal()
	for round := range 2 { // from its own client, and from an attachment
		must(t, c.WriteMessage(websocket.TextMessage, []byte(`{"type":"detach"}`)))
		if seen += c.rest(); c.last != nil {
			t.Errorf("round %d ends with %v", round, c.last)
		}
		c = s.attach(exec, "?resume=true")
		if c.ready.From != int64(len(seen)) {
			t.Errorf("round %d goes on at %d of %d", round, c.ready.From, len(seen))
		}
		c.typ("echo still\n")
		seen += c.expect("still\r\n")
	}
	c.typ("exit 3\n")
	if c.rest(); c.last["exit_code"] != 3.0 {
		t.Errorf("it ends with %v", c.last)
	}
	if got := s.observe(exec, "").until(""); got != seen {
		t.Errorf("all of it is %q, was seen as %q", got, seen)
	}
	s.ask("GET", exec+"/attach?resume=maybe", "").want(t, 422, "invalid_argument")
}
