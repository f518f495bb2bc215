package e2b

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestInputDraining wants a stream of input that stays open to end with the server.
func TestInputDraining(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		s := serve(t)
		body, open := io.Pipe()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		context.AfterFunc(ctx, func() { _ = open.Close() })
		r, err := http.NewRequestWithContext(ctx, "POST", s.url+streamInput, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/connect+json")
		token(s, s.box).enter(r.Header)
		s.drain()
		resp, err := client(t, http2).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if text, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(text), `"code":"canceled"`) {
			t.Errorf("HTTP/2 %v: %q, %v", http2, text, err)
		}
	}
}
