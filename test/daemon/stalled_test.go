package daemon_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestStalledReaders lets clients take nothing while much output flows: others
// get theirs, and the server's memory does not grow with what they leave. All of
// the output is kept for a reader that is slow, and so none may get a gap.
func TestStalledReaders(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	path := p.exec(box, map[string]any{"cmd": "read x; dd if=/dev/zero bs=64k count=900 2>/dev/null | tr '\\0' x", "stdin_open": true})
	before := p.rss(t)
	for range 20 {
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://box"+path+"/events", nil)
		must(t, err)
		resp, err := p.client.Do(req)
		must(t, err)
		defer resp.Body.Close() // and nothing is read
	}
	reader := p.events(path, 0)
	attached := p.socket(path + "/attach")
	say(t, attached, `{"type":"eof"}`)
	var both sync.WaitGroup
	var seen int
	both.Go(func() {
		for {
			e, ok := reader.next()
			if !ok || e.kind == "exit" {
				return
			}
			if e.kind != "log" {
				t.Errorf("a reader that reads got a %s", e.kind)
			}
			seen += len(fmt.Sprint(e.data["data"]))
		}
	})
	both.Go(func() {
		if s := show(t, attached); len(s.out[1]) != 900<<16 || s.last["type"] != "exit" {
			t.Errorf("attached: %d bytes, last %v", len(s.out[1]), s.last)
		}
	})
	both.Wait()
	if seen != 900<<16 {
		t.Errorf("%d bytes of events", seen)
	}
	if grown := p.rss(t) - before; grown > 32<<20 {
		t.Errorf("the server has grown by %d MiB", grown>>20)
	}
	if _, last := p.events(path, 0).rest(); last.kind != "exit" {
		t.Errorf("one that comes late ends with %v", last)
	}
}

// TestAtOnce starts, cancels, follows and stops at the same time: each call
// has an answer of its own, and each stream an end.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			a := p.ask("POST", box+"/exec", map[string]any{"cmd": "echo on; sleep 100"})
			if a.status == 409 || a.status == 503 { // the box was quicker
				return
			}
			m := a.want(t, 201, "")
			id, _ := m["id"].(string)
			all.Go(func() { p.ask("POST", box+"/exec/"+id+":cancel", map[string]any{"grace_ms": 100}) })
			if out, last := p.events(box+"/exec/"+id, 0).rest(); last.kind != "exit" || !strings.HasPrefix("on\n", out["stdout"]) {
				t.Errorf("got %v, then %v", out, last)
			}
		})
	}
	all.Go(func() { p.ask("POST", box+":stop?timeout_seconds=0", nil).want(t, 200, "") })
	all.Wait()
	if m := p.ask("GET", box, nil).want(t, 200, ""); m["status"] != "stopped" {
		t.Errorf("the box: %v", m)
	}
}
