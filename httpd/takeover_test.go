package httpd_test

import (
	"strings"
	"testing"

	"sandbox/core/options"
	"sandbox/httpd"
)

// TestTakeOver has a service go on with the exec of another server as soon as that one
// has left it.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *httpd.Config) { c.Shared = true })
	id := s.create(`{"image": "default"}`)
	box, err := s.runtime.Get(t.Context(), id)
	must(t, err)
	command, err := box.Exec(t.Context(), options.Exec{Cmd: []string{"sh", "-c", "echo one; read line; echo $line"}, Stdin: true, KeepStdin: true})
	must(t, err)
	at := "/v1/boxes/" + id + "/exec/" + command.ID()
	s.ask("GET", at, "").want(t, 200, "")
	for _, request := range []string{"GET " + at + "/events", "POST " + at + ":write_stdin", "POST " + at + ":close_stdin"} {
		method, path, _ := strings.Cut(request, " ")
		if got := s.ask(method, path, ""); got.code() != "invalid_state" || !strings.Contains(got.text, "another server") {
			t.Errorf("%s: %d %s", request, got.status, got.text)
		}
	}
	must(t, command.Detach())
	s.ask("POST", at+":write_stdin?close=true", "two\n").want(t, 200, "")
	if got := s.ask("GET", at+"/events", ""); !strings.Contains(got.text, "one\\n") || !strings.Contains(got.text, "two\\n") || !strings.Contains(got.text, "event: exit") {
		t.Errorf("events are %s", got.text)
	}
}
