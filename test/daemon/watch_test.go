package daemon_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// watch begins a watch of a directory, as Server-Sent Events.
func (p *program) watch(box, query string) *stream {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), "GET", "http://box"+box+"/files:watch?"+query, nil)
	must(p.t, err)
	resp, err := p.client.Do(req)
	must(p.t, err)
	p.t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		p.t.Fatalf("watch: %d %s", resp.StatusCode, resp.Header)
	}
	return &stream{p.t, resp.Body, bufio.NewReader(resp.Body)}
}

// TestWatchRoute streams the same events both ways, up to the end of the directory.
func TestWatchRoute(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	p.events(p.sh(box, "mkdir -p /w/d"), 0).rest()
	s := p.watch(box, "path=/w&recursive=true")
	conn, resp, err := p.connect(box + "/files:watch?path=/w&recursive=true")
	if err != nil {
		t.Fatal(err, resp)
	}
	defer conn.Close()
	p.events(p.sh(box, "cd /w; echo x >d/f; mv d/f g; rm -r d g; cd /; rmdir /w"), 0).rest()

	want := []string{"create /w/d/f", "modify /w/d/f", "rename /w/g", "remove /w/d", "remove /w/g", "end "}
	var events, frames []string
	for e, ok := s.next(); ok; e, ok = s.next() {
		if e.kind != e.data["type"] {
			t.Errorf("the event %s has the data %v", e.kind, e.data)
		}
		path, _ := e.data["path"].(string)
		events = append(events, e.kind+" "+path)
	}
	for {
		_, frame, err := conn.ReadMessage()
		if err != nil {
			if !strings.Contains(err.Error(), "1000") {
				t.Errorf("the socket ends with %v", err)
			}
			break
		}
		var m struct{ Type, Path string }
		must(t, json.Unmarshal(frame, &m))
		frames = append(frames, m.Type+" "+m.Path)
	}
	if events = slices.Compact(events); !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
	if frames = slices.Compact(frames); !slices.Equal(frames, want) {
		t.Errorf("frames %q, want %q", frames, want)
	}
}

// TestWatchEndsWithBox refuses what can't be watched, and tells why a watch ends.
func TestWatchEndsWithBox(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	for path, want := range map[string]struct {
		status int
		code   string
	}{
		"": {400, "malformed"}, "?path=/nosuch": {404, "file_not_found"}, "?path=/etc/passwd": {422, "invalid_argument"}, "?path=/&recursive=x": {422, "invalid_argument"},
		"?path=/root&user=1000": {403, "permission_denied"}, "?path=a": {422, "invalid_argument"},
	} {
		p.events(p.sh(box, "mkdir -p /root; chmod 700 /root"), 0).rest()
		p.ask("GET", box+"/files:watch"+path, nil).want(t, want.status, want.code)
	}
	s := p.watch(box, "path=/tmp")
	conn, resp, err := p.connect(box + "/files:watch?path=/tmp")
	if err != nil {
		t.Fatal(err, resp)
	}
	defer conn.Close()
	must(t, conn.WriteMessage(2, []byte("input")))
	_, frame, err := conn.ReadMessage()
	if err != nil || !strings.Contains(string(frame), "takes no frames") {
		t.Errorf("a frame is answered with %s, %v", frame, err)
	}
	p.ask("POST", box+":stop?timeout_seconds=1", nil).want(t, 200, "")
	e, ok := s.next()
	if !ok || e.kind != "end" || e.data["reason"] != "box_stopped" {
		t.Errorf("it ends with %+v", e)
	}
}
