package proxy_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"

	"sandbox/core/fault"
	"sandbox/httpd/proxy"
)

// watched is a connection that tells when it is closed.
type watched struct {
	net.Conn
	tell func()
}

func (w watched) Close() error {
	defer w.tell()
	return w.Conn.Close()
}

// TestClosedIdle has a program close a connection that was kept, right when it was chosen
// for a request that can't be sent again.
func TestClosedIdle(t *testing.T) {
	t.Parallel()
	var theirs net.Conn
	var closed chan struct{} // our side of the last connection is
	p := proxy.New(func(context.Context, string, int) (net.Conn, error) {
		ours, program := net.Pipe()
		gone := make(chan struct{})
		theirs, closed = program, gone
		go func() {
			if _, err := http.ReadRequest(bufio.NewReader(program)); err == nil {
				_, _ = io.WriteString(program, "HTTP/1.1 204 No Content\r\n\r\n")
			}
		}()
		return watched{ours, sync.OnceFunc(func() { close(gone) })}, nil
	})
	defer p.Close()
	to := proxy.Target{Box: "box", Port: 1, Path: "/"}
	if err := p.Serve(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil), to); err != nil {
		t.Fatal(err)
	}
	chosen := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		_ = theirs.Close()
		<-closed
	}})
	err := p.Serve(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader("x")).WithContext(chosen), to)
	if !fault.Is(err, fault.Upstream) || !strings.Contains(err.Error(), "closed the connection without an answer") {
		t.Errorf("got %v", err)
	}
}
