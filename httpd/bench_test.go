package httpd_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// connections is how many clients a benchmark has at once.
const connections = 4

// load sends GETs over kept connections and returns how many a second.
func load(b *testing.B, c *http.Client, url, key string, n int) float64 {
	b.Helper()
	start := time.Now()
	failed := make(chan error, connections)
	for range connections {
		go func() {
			var err error
			for range n / connections {
				if err = once(c, url, key); err != nil {
					break
				}
			}
			failed <- err
		}()
	}
	for range connections {
		if err := <-failed; err != nil {
			b.Error(err)
		}
	}
	return float64(n) / time.Since(start).Seconds()
}

func once(c *http.Client, url, key string) error {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%d, %w", resp.StatusCode, err)
	}
	return nil
}

// bare serves one document with net/http alone and returns its address.
func bare(b *testing.B, doc string) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	text := []byte(doc)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = w.Write(text)
	})}
	go func() { _ = server.Serve(l) }()
	b.Cleanup(func() { check(b, server.Shutdown(context.Background())) })
	return "http://" + l.Addr().String()
}

// BenchmarkRead reports, for a listing of 50 boxes and for one box, the rate as a
// share of a bare handler's that sends the same bytes, in turns.
func BenchmarkRead(b *testing.B) {
	s := start(b)
	for i := range 50 {
		s.create(fmt.Sprintf(`{"name":"n%d","labels":{"team":"a"}}`, i))
	}
	for _, path := range []string{"/v1/boxes", "/v1/boxes/n25"} {
		b.Run(path, func(b *testing.B) {
			doc := s.ask("GET", path, "").text
			plain := bare(b, doc)
			const round = 4000
			var ours, theirs float64
			rounds := 0
			for b.Loop() {
				ours += load(b, s.client, s.url+path, s.key, round)
				theirs += load(b, s.client, plain, s.key, round)
				rounds++
			}
			b.ReportMetric(ours/float64(rounds), "req/s")
			b.ReportMetric(theirs/float64(rounds), "bare_req/s")
			b.ReportMetric(ours/theirs, "share")
			b.ReportMetric(float64(len(doc)), "bytes")
		})
	}
}
