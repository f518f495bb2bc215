package httpd_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sandbox/httpd"
)

// silent is a registry that does not answer.
type silent struct {
	host        string
	asked, left chan struct{} // a request has come, and was given up
}

func newSilent(t *testing.T) *silent {
	t.Helper()
	r := &silent{asked: make(chan struct{}, 8), left: make(chan struct{}, 8)}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		r.asked <- struct{}{}
		<-req.Context().Done()
		r.left <- struct{}{}
	}))
	t.Cleanup(server.Close)
	r.host = strings.TrimPrefix(server.URL, "http://")
	return r
}

// pullFrom begins a pull that streams.
func (s *service) pullFrom(ctx context.Context, host string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/images:pull", strings.NewReader(`{"reference":"`+host+`/a"}`))
	must(s.t, err)
	bearer(s.key)(req)
	header("Accept", "text/event-stream")(req)
	resp, err := s.client.Do(req)
	must(s.t, err)
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// TestPullStaysAlive wants signs of life from a pull that has no news, and the
// pull to end when its client hangs up.
func TestPullStaysAlive(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *httpd.Config) { c.Heartbeat = time.Millisecond })
	r := newSilent(t)
	ctx, hangUp := context.WithCancel(t.Context())
	lines := bufio.NewReader(s.pullFrom(ctx, r.host).Body)
	for range 3 {
		line, err := lines.ReadString('\n')
		if err == nil && line == ": alive\n" {
			line, err = lines.ReadString('\n')
		}
		if err != nil || line != "\n" {
			t.Fatalf("got %q, %v", line, err)
		}
	}
	<-r.asked
	hangUp()
	<-r.left
}

// TestPullBrokenOffByTheEnd wants a pull to tell that the server ends.
func TestPullBrokenOffByTheEnd(t *testing.T) {
	t.Parallel()
	s := start(t)
	r := newSilent(t)
	body := bufio.NewReader(s.pullFrom(t.Context(), r.host).Body)
	<-r.asked
	closed := make(chan error, 1)
	go func() { closed <- s.server.Close(context.WithoutCancel(t.Context())) }()
	event, err := body.ReadString('\n')
	data, err2 := body.ReadString('\n')
	if err != nil || err2 != nil || event != "event: error\n" || !strings.HasPrefix(data, `data: {"error":{"code":"unavailable"`) {
		t.Errorf("got %q, %q, %v, %v", event, data, err, err2)
	}
	must(t, <-closed)
}
