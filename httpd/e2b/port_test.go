package e2b

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// program serves HTTP on a port of the host, which every box has here.
func program(t *testing.T, handle http.HandlerFunc) (port int) {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server.Listener.Addr().(*net.TCPAddr).Port
}

// askPort sends a request to a program on a port of the service's box.
func (s service) askPort(t *testing.T, http2 bool, port int) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = fmt.Sprintf("%d-%s.localhost", port, s.box)
	r.Header.Set(trafficHeader, s.token("traffic", s.box))
	resp, err := client(t, http2).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// half writes the first part of an answer whose length nobody knows.
func half(w http.ResponseWriter) {
	_, _ = io.WriteString(w, "half")
	_ = http.NewResponseController(w).Flush()
}

// wantHalf reads an answer that must end in the middle.
func wantHalf(t *testing.T, resp *http.Response) {
	t.Helper()
	if got, err := io.ReadAll(resp.Body); string(got) != "half" || err == nil {
		t.Errorf("got %q, %v; want a half answer that is broken off", got, err)
	}
}

// TestPortBrokenOff wants an answer that ends in the middle to end so for the client.
func TestPortBrokenOff(t *testing.T) {
	t.Parallel()
	s := serve(t)
	port := program(t, func(w http.ResponseWriter, _ *http.Request) {
		half(w)
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close()
		}
	})
	for _, http2 := range []bool{false, true} {
		wantHalf(t, s.askPort(t, http2, port))
	}
}

// TestPortDraining wants a server that ends to break off an answer that has begun, and
// to say why there is none.
func TestPortDraining(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		s := serve(t)
		begins := program(t, func(w http.ResponseWriter, r *http.Request) {
			half(w)
			<-r.Context().Done()
		})
		silent := program(t, func(_ http.ResponseWriter, r *http.Request) {
			s.drain()
			<-r.Context().Done()
		})
		begun := s.askPort(t, http2, begins)
		if resp := s.askPort(t, http2, silent); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("without an answer: %s, want 503", resp.Status)
		}
		wantHalf(t, begun)
	}
}
