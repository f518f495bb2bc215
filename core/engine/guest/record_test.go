package guest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core/engine/wire"
)

// TestKeptText checks that an ended exec without a reader keeps little text, and
// that the others are returned unchanged.
func TestKeptText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	g := newGuest(t)
	e := &exec{
		id: "exec_x", asked: wire.Start{Cmd: []string{"echo", long}, Env: map[string]string{"A": long}}, created: time.Now(),
		done: make(chan struct{}), left: make(chan struct{}), reader: &wire.Conn{}, files: files{out: -1, err: -1, in: -1},
	}
	whole := func(r wire.Exec) bool { return len(r.Cmd) == 2 && r.Cmd[1] == long && r.Env["A"] == long }
	if !whole(e.record(g)) {
		t.Error("a running exec is cut")
	}
	if r := e.listed(g); textSize(r.Cmd, r.Env) != keptText || r.Env != nil || r.Cmd[0] != "echo" {
		t.Errorf("listed with %d bytes", textSize(r.Cmd, r.Env))
	}
	e.finish(api.ExitStatus{Status: api.ExecSucceeded})
	if !whole(e.record(g)) {
		t.Error("an exec that is read is cut")
	}
	e.detach()
	if r := e.record(g); textSize(r.Cmd, r.Env) != keptText || r.End == nil {
		t.Errorf("an ended exec keeps %d bytes", textSize(r.Cmd, r.Env))
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ cmd, want []string }{
		{nil, nil},
		{[]string{"a", "b"}, []string{"a", "b"}},
		{[]string{strings.Repeat("x", keptText+1)}, []string{strings.Repeat("x", keptText)}},
		{[]string{"a", strings.Repeat("x", keptText), "b"}, []string{"a", strings.Repeat("x", keptText-1)}},
	} {
		if got := cut(tt.cmd); !slices.Equal(got, tt.want) {
			t.Errorf("got %d arguments of %d bytes", len(got), textSize(got, nil))
		}
	}
	if got := cut(append(make([]string, 100_000), strings.Repeat("x", keptText+1))); len(got) > keptText {
		t.Errorf("%d empty arguments are kept", len(got))
	}
}
