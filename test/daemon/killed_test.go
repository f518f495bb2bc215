package daemon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandbox/core/local"
	"sandbox/test/programs"
)

// TestKilled kills the server while commands write, and wants readers of the
// next one to get all of it, once.
func TestKilled(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	const lines = 3000
	script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo line $i; echo e$i >&2; i=$((i+1)); done; exit 5", lines)
	path := p.sh(box, script)
	open := p.exec(box, map[string]any{"cmd": "read x; echo got $x; read y; echo then $y", "stdin_open": true})
	quick := p.sh(box, "sleep 0.2; echo while nobody looked; exit 6")
	conn := p.socket(open + "/attach")
	must(t, conn.WriteMessage(2, []byte("one\n")))
	if _, b, err := conn.ReadMessage(); err != nil || string(b) != "\x01got one\n" {
		t.Fatalf("got %q, %v", b, err)
	}
	out, after, last := map[string]string{}, int64(0), event{}
	for round := 0; last.kind != "exit"; round++ {
		s := p.events(path, after)
		for {
			e, ok := s.next()
			if !ok {
				break
			}
			if e.id != after+1 {
				t.Fatalf("event %d comes behind %d", e.id, after)
			}
			after, last = e.id, e
			if e.kind == "log" {
				out[fmt.Sprint(e.data["stream"])] += fmt.Sprint(e.data["data"])
			}
			if round < 3 && len(out["stdout"]) > (round+1)*5000 {
				p.kill()
				p.start()
				break
			}
		}
	}
	var want, wantErr strings.Builder
	for i := range lines {
		fmt.Fprintln(&want, "line", i)
		fmt.Fprintf(&wantErr, "e%d\n", i)
	}
	if out["stdout"] != want.String() || out["stderr"] != wantErr.String() || last.data["exit_code"] != 5.0 {
		t.Errorf("%d and %d bytes, last %v", len(out["stdout"]), len(out["stderr"]), last)
	}
	conn = p.socket(open + "/attach?after_stdout=8")
	must(t, conn.WriteMessage(2, []byte("two\n")))
	if s := show(t, conn); s.out[1] != "then two\n" {
		t.Errorf("input after a kill: %+v", s)
	}
	if out, last := p.events(quick, 0).rest(); out["stdout"] != "while nobody looked\n" || last.data["exit_code"] != 6.0 {
		t.Errorf("got %v, %v", out, last)
	}
	p.kill()
	p.start()
	if out, _ := p.events(path, 0).rest(); out["stdout"] != want.String() {
		t.Errorf("a replay after all has %d bytes", len(out["stdout"]))
	}
}

// TestKilledInCreate kills the server at many moments of a create, and wants the
// next try with the same key to lead to one box, the one that the first try made
// if it made one.
func TestKilledInCreate(t *testing.T) {
	t.Parallel()
	p := serve(t)
	for round := range 24 {
		key := fmt.Sprint("round-", round)
		first := make(chan string, 1)
		go func() { first <- p.create(key) }()
		p.awaitChanges(round%12, first)
		p.kill()
		heard := <-first
		p.start()
		id := p.create(key)
		if ids := p.boxes(); id == "" || !slices.Equal(ids, []string{id}) || heard != "" && heard != id {
			t.Fatalf("round %d: first %q, then %q; boxes %q", round, heard, id, ids)
		}
		p.ask("DELETE", "/v1/boxes/"+id+"?force=true", nil).want(t, 200, "")
	}
}

// create makes a box with an Idempotency-Key, and returns its id, or "" if no
// reply came.
func (p *program) create(key string) string {
	body := fmt.Sprintf(`{"rootfs_path": %q, "network": "None", "name": "one"}`, p.rootfs)
	req, err := http.NewRequestWithContext(p.t.Context(), "POST", "http://box/v1/boxes", strings.NewReader(body))
	check(p.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	resp, err := p.client.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	var box struct{ ID string }
	_ = json.NewDecoder(resp.Body).Decode(&box) // the server may be killed meanwhile
	return box.ID
}

// awaitChanges waits until the records of creates and of boxes have changed n
// times, or until the create has ended.
func (p *program) awaitChanges(n int, end chan string) {
	for last := p.records(); n > 0 && len(end) == 0; {
		if now := p.records(); now != last {
			last, n = now, n-1
		}
	}
}

// records names the files with the records of creates and of boxes, and their
// sizes.
func (p *program) records() string {
	var all strings.Builder
	for _, dir := range []string{"daemon/creates", "records"} {
		entries, _ := os.ReadDir(filepath.Join(p.home, dir)) // may not be there yet
		for _, e := range entries {
			if info, err := e.Info(); err == nil {
				fmt.Fprintln(&all, e.Name(), info.Size())
			}
		}
	}
	return all.String()
}

// TestShutdown tells streams and runs, and leaves boxes and commands running.
func TestShutdown(t *testing.T) {
	t.Parallel()
	p := serve(t)
	p.importBusybox()
	box := p.box()
	ran := make(chan answer)
	go func() {
		ran <- p.ask("POST", "/v1/run", map[string]any{"image": "busybox", "network": "None", "cmd": []string{"sleep", "100"}})
	}()
	for len(p.boxes()) < 2 {
		time.Sleep(5 * time.Millisecond)
	}
	path := p.sh(box, "echo on; while [ ! -e /tmp/gate ]; do sleep 0.01; done; echo off")
	events := p.events(path, 0)
	if e, ok := events.next(); !ok || e.data["data"] != "on\n" {
		t.Fatalf("got %v", e)
	}
	attached := p.socket(path + "/attach")
	terminal := p.socket(box + "/attach")
	start := time.Now()
	must(t, p.cmd.Process.Signal(os.Interrupt))
	if _, last := events.rest(); last.kind == "exit" {
		t.Error("the stream has an exit")
	}
	for name, s := range map[string]shown{"attached": show(t, attached), "terminal": show(t, terminal)} {
		if s.last["type"] != "error" || s.last["code"] != "unavailable" || s.close != 1011 {
			t.Errorf("%s: %+v", name, s)
		}
	}
	(<-ran).want(t, 503, "unavailable")
	if took := time.Since(start); took > 8*time.Second { // the logs that are left are stored behind this
		t.Errorf("it took %v: something was not told", took)
	}
	must(t, p.cmd.Wait())
	p.start()
	p.events(p.sh(box, "touch /tmp/gate"), 0).rest()
	if out, last := p.events(path, 1).rest(); out["stdout"] != "off\n" || last.data["exit_code"] != 0.0 {
		t.Errorf("got %v, %v", out, last)
	}
}

// TestRemovedByOthers takes the output away with a box that another process
// removes, while the server runs and while it does not.
func TestRemovedByOthers(t *testing.T) {
	t.Parallel()
	p := serve(t)
	host, err := local.Open(local.Config{Home: p.home, HelperDir: programs.Dir()})
	must(t, err)
	defer host.Close(t.Context())
	for _, running := range []bool{true, false} {
		box := p.box()
		id := strings.TrimPrefix(box, "/v1/boxes/")
		dir := filepath.Join(p.home, "spool", id)
		p.events(p.sh(box, "echo x"), 0).rest()
		sleeper := p.events(p.sh(box, "sleep 100"), 0)
		if _, err := os.Stat(dir); err != nil {
			t.Fatal(err)
		}
		if !running {
			p.kill()
		}
		must(t, host.Remove(t.Context(), id, true))
		if running {
			if _, last := sleeper.rest(); last.kind != "exit" {
				t.Errorf("a stream ends with %v", last)
			}
		} else {
			p.start()
		}
		for { // the server learns of it a little later
			if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}
