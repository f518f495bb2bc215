package httpd_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sandbox/api"
)

// ran returns the events of a run of code.
func (s *service) ran(box, body string) (kinds []string, events []api.CodeEvent) {
	s.t.Helper()
	a := s.ask("POST", "/v1/boxes/"+box+"/code", body).want(s.t, 200, "")
	for block := range strings.SplitSeq(strings.TrimSpace(a.text), "\n\n") {
		kind, data, _ := strings.Cut(strings.TrimPrefix(block, "event: "), "\ndata: ")
		var e api.CodeEvent
		must(s.t, json.Unmarshal([]byte(data), &e))
		if string(e.Type) != kind {
			s.t.Errorf("the event %s has the data %s", kind, data)
		}
		kinds, events = append(kinds, kind), append(events, e)
	}
	return kinds, events
}

// TestCode runs the Python of this host.
func TestCode(t *testing.T) {
	t.Parallel()
	s := start(t)
	box := s.create(`{}`)
	kinds, events := s.ran(box, `{"code":"import sys; print('out'); print('err', file=sys.stderr, flush=True); x = 41; display(1); x + 1"}`)
	if at := slices.Index(kinds, "stderr"); at < 0 || events[at].Text != "err\n" { // it has no place among the others
		t.Fatalf("got the events %q", kinds)
	} else {
		kinds, events = slices.Delete(kinds, at, at+1), slices.Delete(events, at, at+1)
	}
	if want := []string{"start", "stdout", "result", "result", "end"}; !slices.Equal(kinds, want) {
		t.Fatalf("got the events %q", kinds)
	}
	if !events[0].Fresh || events[0].ContextID != "python" || !events[3].Result.IsMain || *events[3].Result.Text != "42" || events[4].Status != api.CodeSucceeded {
		t.Errorf("got %+v", events)
	}
	made := s.ask("POST", "/v1/boxes/"+box+"/contexts", `{"working_dir":"/tmp"}`).want(t, 201, "")
	id, _ := made.json["id"].(string)
	at := "/v1/boxes/" + box + "/contexts/" + id
	if made.header.Get("Location") != at || made.json["language"] != "python" || made.json["working_dir"] != "/tmp" {
		t.Errorf("made %s at %s", made.text, made.header.Get("Location"))
	}
	if _, events = s.ran(box, `{"code":"x","context":"`+id+`"}`); events[1].Error == nil || events[1].Error.Name != "NameError" || events[2].Status != api.CodeFailed {
		t.Errorf("in another context: %+v", events)
	}
	all := s.ask("GET", "/v1/boxes/"+box+"/contexts", "").want(t, 200, "")
	if n := len(all.json["contexts"].([]any)); n != 2 {
		t.Errorf("the list has %d: %s", n, all.text)
	}
	s.ask("GET", at, "").want(t, 200, "")
	s.ask("POST", at+":interrupt", "").want(t, 200, "")
	if a := s.ask("POST", at+":restart", "").want(t, 200, ""); a.json["exec_id"] == made.json["exec_id"] {
		t.Errorf("restarted: %s", a.text)
	}
	s.ask("DELETE", at, "").want(t, 200, "")
	for _, again := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"POST", ":restart"}, {"POST", ":interrupt"}} {
		s.ask(again[0], at+again[1], "").want(t, 404, "context_not_found")
	}
}

// TestCodeRefused wants what can't be run to be refused before the first event.
func TestCodeRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	box := s.create(`{}`)
	for _, tt := range []struct {
		method, path, body string
		status             int
		code               string
	}{
		{"POST", "/code", ``, 400, "malformed"},
		{"POST", "/code", `{"language":"python"}`, 400, "malformed"},
		{"POST", "/code", `{"code":1}`, 400, "malformed"},
		{"POST", "/code", `{"code":"","colour":1}`, 400, "malformed"},
		{"POST", "/code", `{"code":"a\u0000b"}`, 422, "invalid_argument"},
		{"POST", "/code", `{"code":"","language":"cobol"}`, 422, "invalid_argument"},
		{"POST", "/code", `{"code":"","context":"../x"}`, 422, "invalid_argument"},
		{"POST", "/code", `{"code":"","context":"bash","language":"python"}`, 422, "invalid_argument"},
		{"POST", "/code", `{"code":"","timeout_ms":-1}`, 422, "invalid_argument"},
		{"POST", "/code", `{"code":"","env":{"A=B":""}}`, 422, "invalid_argument"},
		{"POST", "/code", `{"code":"","context":"ctx_aaaaaaaaaaaaaaaaaaaa"}`, 404, "context_not_found"},
		{"POST", "/contexts", `{"env":{"PATH":"/nowhere"}}`, 422, "execution_failed"},
		{"POST", "/contexts", `{"working_dir":"/no/such"}`, 422, "execution_failed"},
		{"POST", "/contexts", `{"working_dir":"relative"}`, 422, "invalid_argument"},
		{"GET", "/contexts/..%2Fx", ``, 404, "context_not_found"},
	} {
		s.ask(tt.method, "/v1/boxes/"+box+tt.path, tt.body).want(t, tt.status, tt.code)
	}
	s.ask("POST", "/v1/boxes/nosuch/code", `{"code":""}`).want(t, 404, "box_not_found")
	s.ask("POST", "/v1/boxes/"+box+":stop", "").want(t, 200, "")
	s.ask("POST", "/v1/boxes/"+box+"/code", `{"code":""}`).want(t, 409, "invalid_state")
}

// TestCodeLeft wants a client that leaves to interrupt its code, so that the next run
// begins.
func TestCodeLeft(t *testing.T) {
	t.Parallel()
	s := start(t)
	box := s.create(`{}`)
	s.ran(box, `{"code":"x = 7"}`)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/boxes/"+box+"/code", strings.NewReader(`{"code":"print('on')\nwhile True: pass"}`))
	must(t, err)
	bearer(s.key)(req)
	resp, err := s.client.Do(req)
	must(t, err)
	for lines := bufio.NewScanner(resp.Body); lines.Scan() && !strings.Contains(lines.Text(), `"on\n"`); {
	}
	leave()
	_ = resp.Body.Close()
	_, events := s.ran(box, `{"code":"x"}`)
	if len(events) != 3 || events[1].Result == nil || *events[1].Result.Text != "7" {
		t.Errorf("after a client that left: %+v", events)
	}
}
