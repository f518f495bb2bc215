package cli

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandbox/auth"
	"sandbox/httpd"
	"sandbox/spool"
)

// newServed is a host whose command lines go to a server.
func newServed(t *testing.T) *host {
	t.Helper()
	h, home := newHost(t), t.TempDir()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	keys, err := auth.Open(filepath.Join(home, "keys"), nil)
	must(err)
	idempotency, err := httpd.OpenIdempotency(filepath.Join(home, "creates"))
	must(err)
	outputs := spool.Open(spool.Config{Dir: filepath.Join(home, "spool")})
	server, err := httpd.New(httpd.Config{
		Runtime: h.runtime(false), Keys: keys, Idempotency: idempotency, Spool: outputs, Held: home,
		Log: slog.New(slog.DiscardHandler),
	})
	must(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l, httpd.ByFile) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		must(server.Close(ctx))
		must(<-served)
		outputs.Close()
		must(keys.Close())
	})
	h.target = []string{"--url", "http://" + l.Addr().String()}
	return h
}

// TestKillWhileAttached sends a signal to a command that another is attached to.
func TestKillWhileAttached(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]*host{"in process": newHost(t), "on a server": newServed(t)} {
		h.create("-n", "a")
		k := newKeyboard(t)
		k.run(h, "exec", "-it", "a", "--", "sh", "-c", "trap 'exit 8' HUP; echo set; while :; do sleep 0.05; done")
		k.expect("set")
		id := h.onlyExec("a").ID
		if _, errs, code := h.sandbox("kill", "-s", "HUP", "a", id); code != 0 {
			t.Errorf("%s: kill: exit %d, %q", name, code, errs)
		}
		if code := <-k.code; code != 8 {
			t.Errorf("%s: exit %d, want 8", name, code)
		}
		if _, errs, code := h.sandbox("kill", "-s", "HUP", "a", id); code != 6 {
			t.Errorf("%s: of one that has ended: exit %d, %q", name, code, errs)
		}
	}
}

// TestObserve watches a command that another has joined.
func TestObserve(t *testing.T) {
	t.Parallel()
	h := newServed(t)
	h.create("-n", "a")
	k := newKeyboard(t)
	k.run(h, "exec", "-it", "a", "--", "sh", "-c", "echo set; read answer; echo got $answer; exit 7")
	k.expect("set")
	id, watched := h.onlyExec("a").ID, make(chan int, 2)
	for range 2 {
		go func() {
			out, errs, code := h.sandbox("attach", "--observe", "a", id)
			if !strings.Contains(out, "got yes") {
				t.Errorf("an observer saw %q, %q", out, errs)
			}
			watched <- code
		}()
	}
	k.typ("yes\r")
	for _, code := range []int{<-k.code, <-watched, <-watched} {
		if code != 7 {
			t.Errorf("exit %d, want 7", code)
		}
	}
	if _, errs, code := h.sandbox("attach", "--observe", "a"); code != 125 {
		t.Errorf("without an exec: exit %d, %q", code, errs)
	}
}

// TestLogsOfPartial prints the output of a command that has printed a character in part,
// and stays.
func TestLogsOfPartial(t *testing.T) {
	t.Parallel()
	h := newServed(t)
	h.create("-n", "a")
	if _, errs, code := h.sandbox("exec", "-d", "a", "--", "sh", "-c", `printf 'ab\n\303'; printf '\342\202' >&2; exec sleep 1000`); code != 0 {
		t.Fatalf("exec: exit %d, %q", code, errs)
	}
	id, printed := h.onlyExec("a").ID, make(chan string)
	go func() {
		defer close(printed)
		for out := ""; out == ""; { // until it has printed
			out, _, _ = h.sandbox("logs", "a", id)
			if out != "" {
				printed <- out
			}
		}
	}()
	select {
	case out := <-printed:
		if out != "ab\n" {
			t.Errorf("got %q", out)
		}
	case <-time.After(time.Minute):
		t.Error("logs waits for the end of the command")
	}
	if _, errs, code := h.sandbox("kill", "a", id); code != 0 {
		t.Errorf("kill: exit %d, %q", code, errs)
	}
	for range printed { // what it prints once the command has ended
	}
}
