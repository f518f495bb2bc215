package cli

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
)

// against runs a command line against a server that answers as handler does.
func against(t *testing.T, ctx context.Context, handler http.HandlerFunc, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	s := httptest.NewServer(handler)
	defer s.Close()
	var out, errs bytes.Buffer
	code = Run(ctx, append([]string{"--url", s.URL}, args...), Stdio{strings.NewReader(""), &out, &errs})
	return out.String(), errs.String(), code
}

// TestCreateThatComesTooLate: the answer to a create comes after Ctrl-C, and
// its box is removed.
func TestCreateThatComesTooLate(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"create default", "run default -- true"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		asked := make(chan string, 10)
		_, errs, code := against(t, ctx, func(w http.ResponseWriter, r *http.Request) {
			asked <- r.Method + " " + r.URL.String()
			if r.Method == http.MethodPost {
				cancel(Signal(syscall.SIGINT))
				w.WriteHeader(http.StatusCreated)
			}
			_, _ = io.WriteString(w, `{"id":"box_late"}`)
		}, strings.Fields(verb)...)
		close(asked)
		var all []string
		for a := range asked {
			all = append(all, a)
		}
		if got := strings.Join(all, ", "); code != 130 || errs != "" || got != "POST /v1/boxes, DELETE /v1/boxes/box_late?force=true" {
			t.Errorf("%s: exit %d, %q, asked %s", verb, code, errs, got)
		}
	}
}

// TestServerThatLies: nothing of what a server says moves the cursor, and what
// is no answer is no success.
func TestServerThatLies(t *testing.T) {
	t.Parallel()
	for args, c := range map[string]struct {
		reply string
		code  int
	}{
		"ls":                {`{"boxes":[{"id":"\u001b[2Jx","name":"a\nb","status":"\u0007"}]}`, 0},
		"info a":            {`{"id":"\u001b[2J","error":{"code":"internal","message":"\u001b[2J"},"labels":{"\u001b":"\u001b"}}`, 0},
		"create default":    {`{"id":"\u001b[2J"}`, 0},
		"exec -d a -- true": {`{"id":"\u001b[2J"}`, 0},
		"keys ls":           {`{"keys":[{"id":"\u001b[2J","name":"\u001b"}]}`, 0},
		"rm a":              {`{"error":`, 7},
		"stop a":            {`[]`, 7},
		"gc":                {`"\u001b"`, 7},
		"info":              {``, 7},
	} {
		out, errs, code := against(t, t.Context(), func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, c.reply) }, strings.Fields(args)...)
		if code != c.code || strings.ContainsAny(out+errs, "\x1b\x07") {
			t.Errorf("%s: exit %d, %q, %q", args, code, out, errs)
		}
	}
	_, errs, code := against(t, t.Context(), func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(500)
		_, _ = io.WriteString(w, `{"error":{"code":"internal","message":"no\u001b[2J\nsandbox: all is well","request_id":"\u0007"}}`)
	}, "ls")
	if want := "sandbox: no?[2J\n  sandbox: all is well\n  the request in the server's log: ?\n"; code != 1 || errs != want {
		t.Errorf("exit %d, %q", code, errs)
	}
}
