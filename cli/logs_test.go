package cli

import (
	"context"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMoment wants a time that can't be read to be named with its flag; package document
// tests which can.
func TestMoment(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	if got, err := moment("--from", "1d12h", now); err != nil || !got.Equal(now.Add(-36*time.Hour)) {
		t.Errorf("1d12h is %v, %v", got, err)
	}
	if _, err := moment("--from", "yesterday", now); err == nil || !strings.Contains(err.Error(), "--from") {
		t.Errorf("yesterday is %v, which does not name the flag", err)
	}
}

// TestFollowEnds wants Ctrl-C of what follows to end it with 130, and to say
// nothing: while it waits for rows, and while it waits for an answer.
func TestFollowEnds(t *testing.T) {
	t.Parallel()
	const exec = `{"id":"exec_a","box_id":"box_a","status":"running"}`
	for name, args := range map[string]string{"rows": "logs search -f", "a slow answer": "logs search -f --text slow", "an exec": "logs box_a exec_a -f"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		ask := func(w http.ResponseWriter, r *http.Request) {
			doc, _ := io.ReadAll(r.Body)
			slow := strings.Contains(string(doc), "slow") || strings.HasSuffix(r.URL.Path, "/events")
			switch {
			case slow:
				cancel(Signal(syscall.SIGINT))
				<-r.Context().Done()
			case strings.HasSuffix(r.URL.Path, "/search"):
				_, _ = io.WriteString(w, `{"queryId":"q","columns":[],"rows":[],"statistics":{"elapsedMs":1,"readRows":"0","readBytes":"0"}}`)
				time.AfterFunc(50*time.Millisecond, func() { cancel(Signal(syscall.SIGINT)) })
			default:
				_, _ = io.WriteString(w, exec)
			}
		}
		if out, errs, code := against(t, ctx, ask, strings.Fields(args)...); code != 130 || out != "" || errs != "" {
			t.Errorf("%s: exit %d, %q, %q", name, code, out, errs)
		}
		cancel(nil)
	}
}
