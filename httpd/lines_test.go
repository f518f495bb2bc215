package httpd_test

import (
	"strings"
	"sync"
	"testing"

	"sandbox/api"
	"sandbox/httpd"
)

// TestLines wants the output that is in no spool to be handed on, which is that of
// /v1/run, and no other: what is in the spool would be recorded twice.
func TestLines(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got strings.Builder
	ended := make(chan api.Exec, 2)
	s := start(t, func(c *httpd.Config) {
		c.Lines = func(e api.Exec) (func(bool, []byte), func()) {
			return func(stderr bool, p []byte) {
				mu.Lock()
				defer mu.Unlock()
				if stderr {
					got.WriteString("stderr: ")
				}
				got.Write(p)
			}, func() { ended <- e }
		}
	})
	terminal := s.terminal(s.create(`{}`))
	terminal.typ("echo $((40+2)); exit\n")
	terminal.rest()
	s.ask("POST", "/v1/run", `{"image":"default","cmd":["/bin/sh","-c","echo one; echo two >&2"]}`).want(t, 200, "")
	if e := <-ended; e.TTY || !strings.Contains(got.String(), "one\n") || !strings.Contains(got.String(), "stderr: two\n") || strings.Contains(got.String(), "42") {
		t.Errorf("%q of %+v", got.String(), e)
	}
}
