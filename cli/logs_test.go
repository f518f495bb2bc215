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

func TestMoment(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	for s, want := range map[string]string{
		"2d": "2026-03-08T12:00:00Z", "1d12h": "2026-03-09T00:00:00Z", "90m": "2026-03-10T10:30:00Z", "0s": "2026-03-10T12:00:00Z",
		"2026-01-31T00:00:00+01:00": "2026-01-31T00:00:00+01:00",
		"-1h":                       "", "-2d": "", "d": "", "2d-1h": "", "1.5d": "", "2days": "", "99999d": "", "": "", "yesterday": "",
	} {
		got, err := moment("--from", s, now)
		if (err == nil) != (want != "") || err == nil && got.Format(time.RFC3339) != want {
			t.Errorf("%q is %v, %v; want %q", s, got, err, want)
		}
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
