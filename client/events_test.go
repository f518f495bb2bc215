package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"sandbox/api"
	"sandbox/core/fault"
)

func link(to, name string) error { return os.Symlink(to, name) }

// TestEventsGoOn breaks the connection after each event, and in the middle of
// one.
func TestEventsGoOn(t *testing.T) {
	t.Parallel()
	var asked []string
	replies := []string{
		": hello\n\nevent: log\nid: 1\ndata: {\"seq\":1,\"stream\":\"stdout\",\"data\":\"a\"}\n\nevent: log\ndata: {\"seq\":2,",
		"event: gap\ndata: {\"from\":2,\"to\":3}\n\n",
		"event: log\r\ndata: {\"seq\":1,\"stream\":\"stdout\",\"data\":\"again\"}\r\n\r\nevent: log\ndata: {\"seq\":4,\n" +
			"data: \"stream\":\"stderr\",\"data\":\"/w==\",\"encoding\":\"base64\"}\n\nevent: news\ndata: 1\n\n",
		"event: exit\ndata: {\"seq\":5,\"exit_code\":3,\"signal\":null,\"status\":\"failed\",\"reason\":\"exited\"}\n\nevent: log\ndata: {}\n\n",
	}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		_, _ = io.WriteString(w, replies[len(asked)-1])
	})
	var got []string
	for e, err := range c.Events(t.Context(), "a", "exec_a", 0) {
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Log != nil:
			data, err := e.Log.Bytes()
			got = append(got, fmt.Sprintf("%d %s %q %v", e.Log.Seq, e.Log.Stream, data, err))
		case e.Gap != nil:
			got = append(got, fmt.Sprintf("gap %d %d", e.Gap.From, e.Gap.To))
		case e.Exit != nil:
			got = append(got, fmt.Sprintf("exit %d", *e.Exit.ExitCode))
		}
	}
	if want := `[1 stdout "a" <nil> gap 2 3 4 stderr "\xff" <nil> exit 3]`; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	if want := "[ after=1 after=3 after=4]"; fmt.Sprint(asked) != want {
		t.Errorf("asked %v, want %s", asked, want)
	}
}

// TestEndWithoutCode checks that an end without an exit code is not taken for
// success.
func TestEndWithoutCode(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/run" {
			_, _ = io.WriteString(w, `{"exit_code":null,"signal":null,"reason":null,"stdout":"out","stderr":"","stdout_encoding":"utf-8","stderr_encoding":"utf-8"}`)
			return
		}
		_, _ = io.WriteString(w, "event: exit\ndata: {\"seq\":1,\"exit_code\":null,\"signal\":null,\"status\":\"lost\",\"reason\":null}\n\n")
	})
	if result, err := c.Run(t.Context(), RunRequest{}); !fault.Is(err, fault.Engine) || result.Stdout != "out" {
		t.Errorf("run: %v, %+v", err, result)
	}
	events := 0
	for e, err := range c.Events(t.Context(), "a", "exec_a", 0) {
		if events++; !fault.Is(err, fault.Engine) || e.Exit == nil || e.Exit.Status != api.ExecLost {
			t.Errorf("events: %v, %+v", err, e)
		}
	}
	if events != 1 {
		t.Errorf("%d events", events)
	}
}

func TestEventsThatCanNotBeRead(t *testing.T) {
	t.Parallel()
	for stream, kind := range map[string]fault.Kind{
		"event: log\ndata: {\n\n":                                             fault.Upstream,
		"event: log\ndata: {\"seq\":0,\"stream\":\"stdout\"}\n\n":             fault.Upstream,
		"event: log\ndata: {\"seq\":1,\"stream\":\"x\"}\n\n":                  fault.Upstream,
		"data: " + strings.Repeat("x", maxLine+1):                             fault.Upstream,
		strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 17):          fault.Upstream,
		"event: log\ndata: {\"seq\":1,\"stream\":\"stdout\",\"data\":\"\"}\n": fault.Unavailable, // never ends
	} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, stream) })
		for _, err := range c.Events(t.Context(), "a", "exec_a", 0) {
			if !fault.Is(err, kind) {
				t.Errorf("%.60q: %v, want %s", stream, err, kind)
			}
		}
	}
}

func FuzzEvents(f *testing.F) {
	f.Add("event: log\ndata: {\"seq\":1,\"stream\":\"stdout\",\"data\":\"a\"}\n\n: ping\n\nevent: exit\ndata: {\"exit_code\":0}\n\n")
	f.Add("event: gap\r\ndata: {\"from\":1,\"to\":2}\r\n\r\n")
	f.Fuzz(func(t *testing.T, stream string) {
		var after, last int64
		ended, err := readEvents(strings.NewReader(stream), &after, func(e api.Event, err error) bool {
			if err != nil && (e.Exit == nil || e.Exit.ExitCode != nil) || e == (api.Event{}) {
				t.Errorf("yielded %+v, %v", e, err)
			}
			if e.Log != nil {
				if e.Log.Seq <= last {
					t.Errorf("event %d after %d", e.Log.Seq, last)
				}
				last = e.Log.Seq
			}
			return true
		})
		if ended == (err != nil) || errors.Is(err, io.EOF) {
			t.Errorf("ended %v, %v", ended, err)
		}
	})
}
