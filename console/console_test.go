package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandbox/core/fault"
	"sandbox/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// clock is a clock that stands still until it is moved.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func (c *clock) move(d time.Duration) { c.at = c.at.Add(d) }

// home is a home whose sessions can be opened again.
type home struct {
	*Sessions
	t     testing.TB
	dir   string
	clock *clock
}

func newHome(t testing.TB) *home {
	t.Helper()
	h := &home{t: t, dir: t.TempDir(), clock: &clock{time.Date(2030, 1, 31, 0, 0, 0, 0, time.UTC)}}
	h.restart()
	return h
}

// restart opens the sessions as the next daemon does.
func (h *home) restart() {
	h.t.Helper()
	var err error
	if h.Sessions, err = Open(Config{Dir: h.dir, Now: h.clock.now}); err != nil {
		h.t.Fatal(err)
	}
}

// signedIn returns the id of a new session.
func (h *home) signedIn(sub string) string {
	h.t.Helper()
	token, _ := h.Offer(sub, nil)
	id, whose, err := h.SignIn(token)
	if err != nil || whose != sub {
		h.t.Fatalf("got %q, %v", whose, err)
	}
	return id
}

// enters reports whether the session with this id lives, and is in use by that.
func (h *home) enters(id string) bool {
	h.t.Helper()
	_, _, leave, err := h.Enter(h.t.Context(), id, false)
	if err == nil {
		leave()
	} else if !fault.Is(err, fault.Unauthenticated) {
		h.t.Error(err)
	}
	return err == nil
}

func TestLink(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		age   time.Duration
		times int
		ok    bool
	}{
		"new":     {0, 1, true},
		"last":    {5*time.Minute - 1, 1, true},
		"expired": {5 * time.Minute, 1, false},
		"twice":   {0, 2, false},
	} {
		h := newHome(t)
		token, until := h.Offer("local", nil)
		if want := h.clock.now().Add(5 * time.Minute); !until.Equal(want) {
			t.Errorf("%s: until %v, want %v", name, until, want)
		}
		h.clock.move(tt.age)
		var err error
		for range tt.times {
			_, _, err = h.SignIn(token)
		}
		if (err == nil) != tt.ok || err != nil && !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestLinks wants a principal's new links to take the place of its own oldest.
func TestLinks(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	others, _ := h.Offer("key_b", nil)
	var tokens []string
	for range most + 1 {
		h.clock.move(time.Second)
		token, _ := h.Offer("key_a", nil)
		tokens = append(tokens, token)
	}
	for i, token := range append(tokens, others) {
		if _, _, err := h.SignIn(token); (err == nil) != (i > 0) {
			t.Errorf("link %d: got %v", i, err)
		}
	}
	h.Offer("key_a", nil)
	h.clock.move(linkLife)
	h.Offer("key_b", nil)
	if len(h.links) != 1 {
		t.Errorf("%d links are kept, want 1: the others have expired", len(h.links))
	}
}

// TestExpiry moves the clock between the requests of a session.
func TestExpiry(t *testing.T) {
	t.Parallel()
	used := slices.Repeat([]time.Duration{29 * time.Minute}, 24) // 11 h 36 min
	for name, tt := range map[string]struct {
		after []time.Duration
		ok    bool
	}{
		"at once":       {nil, true},
		"nearly idle":   {[]time.Duration{Idle - 1}, true},
		"idle":          {[]time.Duration{Idle}, false},
		"in use":        {used, true},
		"nearly at end": {append(slices.Clone(used), 24*time.Minute-1), true},
		"at its end":    {append(slices.Clone(used), 24*time.Minute), false},
	} {
		h := newHome(t)
		id := h.signedIn("local")
		ok := h.enters(id)
		for _, d := range tt.after {
			h.clock.move(d)
			ok = h.enters(id)
		}
		if ok != tt.ok {
			t.Errorf("%s: lives: %v, want %v", name, ok, tt.ok)
		}
		h.clock.move(-time.Hour) // an ended session stays so, whatever the clock does
		if again := h.enters(id); again != tt.ok {
			t.Errorf("%s: lives an hour earlier: %v", name, again)
		}
	}
}

// TestKeyExpiry wants a session to end with the key of the one who asked for it.
func TestKeyExpiry(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	until := h.clock.now().Add(10 * time.Minute)
	token, _ := h.Offer("key_a", &until)
	id, _, err := h.SignIn(token)
	if err != nil || !h.enters(id) {
		t.Fatal(err)
	}
	h.clock.move(10 * time.Minute)
	if h.enters(id) {
		t.Error("the session outlives its key")
	}
}

// TestBusy wants a request under way to keep a session from being idle, and one of
// the background not to.
func TestBusy(t *testing.T) {
	t.Parallel()
	for _, background := range []bool{false, true} {
		h := newHome(t)
		id := h.signedIn("local")
		_, _, leave, err := h.Enter(t.Context(), id, background)
		if err != nil {
			t.Fatal(err)
		}
		h.clock.move(2 * Idle)
		if got := h.enters(id); got == background {
			t.Errorf("background %v: lives: %v", background, got)
		}
		leave()
		h.clock.move(Idle - 1)
		if got := h.enters(id); got == background {
			t.Errorf("background %v: lives after the request: %v", background, got)
		}
	}
}

// TestEnds wants the requests of a session that is ended to end with it, and to stay
// ended for the next daemon.
func TestEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end func(*home, *Session) error
		all bool // of the principal's sessions and links
	}{
		"signed out":            {func(h *home, s *Session) error { return h.End(s) }, false},
		"signed out everywhere": {func(h *home, s *Session) error { return h.EndAll(s.Sub) }, true},
	} {
		h := newHome(t)
		id, other, others := h.signedIn("key_a"), h.signedIn("key_a"), h.signedIn("key_b")
		offered, _ := h.Offer("key_a", nil)
		ctx, session, leave, err := h.Enter(t.Context(), id, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := tt.end(h, session); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), ErrEnded) {
			t.Errorf("%s: the request ended with %v", name, context.Cause(ctx))
		}
		leave()
		first := h.Sessions
		for _, when := range []string{"at once", "after a restart"} {
			if got := []bool{h.enters(id), h.enters(other), h.enters(others)}; !slices.Equal(got, []bool{false, !tt.all, true}) {
				t.Errorf("%s, %s: the session, the principal's other and another principal's live: %v", name, when, got)
			}
			h.restart()
		}
		if _, _, err := first.SignIn(offered); (err == nil) == tt.all {
			t.Errorf("%s: the link: %v", name, err)
		}
	}
}

// TestExpiresUnderWay wants a request to end when its session expires.
func TestExpiresUnderWay(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	until := h.clock.now().Add(20 * time.Millisecond)
	token, _ := h.Offer("key_a", &until)
	id, _, err := h.SignIn(token)
	if err != nil {
		t.Fatal(err)
	}
	ctx, _, leave, err := h.Enter(t.Context(), id, false)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), ErrEnded) {
		t.Errorf("got %v", context.Cause(ctx))
	}
}

// TestMost wants a principal's new session to take the place of the one that it used
// longest ago.
func TestMost(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	another := h.signedIn("key_b")
	var all []string
	for range most {
		h.clock.move(time.Second)
		all = append(all, h.signedIn("key_a"))
	}
	h.clock.move(time.Second)
	h.enters(all[0])
	h.signedIn("key_a")
	for i, id := range append(all, another) {
		if h.enters(id) != (i != 1) {
			t.Errorf("session %d: lives: %v", i, i == 1)
		}
	}
}

// TestRestart wants sessions to outlive the daemon, with the time that they were
// used, to the minute.
func TestRestart(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := h.signedIn("local")
	token, _ := h.Offer("local", nil)
	h.clock.move(20 * time.Minute)
	h.enters(id)
	h.clock.move(writeAfter - 1)
	h.enters(id)
	h.restart()
	h.clock.move(Idle - writeAfter)
	if !h.enters(id) {
		t.Error("the session is gone")
	}
	if _, _, err := h.SignIn(token); err == nil {
		t.Error("a link has outlived the daemon")
	}
	h.restart()
	h.clock.move(Idle)
	if h.restart(); len(h.sessions) != 0 {
		t.Error("an expired session was read")
	}
}

// TestStored wants neither ids nor tokens in the home.
func TestStored(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	token, _ := h.Offer("local", nil)
	id, _, err := h.SignIn(token)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(h.dir, "sessions.json"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), id) || strings.Contains(string(text), token) || strings.Contains(string(text), CSRF(id)) {
		t.Errorf("a secret is in %s", text)
	}
	info, err := os.Stat(filepath.Join(h.dir, "sessions.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestDamaged wants a damaged file to be set aside and named.
func TestDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sessions.json"), []byte(`{"sessions":[{`), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s, err := Open(Config{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil || len(s.sessions) != 0 || !strings.Contains(log.String(), "sessions.damaged") {
		t.Errorf("got %v; the log says %s", err, &log)
	}
	if _, err := os.Stat(filepath.Join(dir, "sessions.damaged")); err != nil {
		t.Error(err)
	}
}

func TestCSRF(t *testing.T) {
	t.Parallel()
	a, _ := newSecret()
	b, _ := newSecret()
	if !ValidCSRF(a, CSRF(a)) || ValidCSRF(a, CSRF(b)) || ValidCSRF(a, "") || ValidCSRF(a, a) || ValidCSRF("", "") {
		t.Error("a token is taken for another session's, or its own is not")
	}
}

// FuzzSessions opens any file, which must let nobody in.
func FuzzSessions(f *testing.F) {
	good, err := json.Marshal(stored{[]record{{Sub: "local", CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour), SeenAt: time.Now()}}})
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"", "{", "null", `{"sessions":null}`, `{"sessions":[{"hash":[1,2,3]}]}`, `{"sessions":[{"hash":[256]}]}`, string(good)} {
		f.Add([]byte(text), "")
	}
	f.Fuzz(func(t *testing.T, text []byte, id string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "sessions.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := s.Enter(t.Context(), id, false); err == nil {
			t.Errorf("%q is a session", id)
		}
		if _, _, err := s.SignIn(id); err == nil {
			t.Errorf("%q is a link", id)
		}
		token, _ := s.Offer("local", nil)
		if _, _, err := s.SignIn(token); err != nil {
			t.Error(err)
		}
	})
}
