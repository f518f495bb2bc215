package e2b

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestEagerClient sends large bodies that nothing reads to their end, and reads nothing
// before all is written. It wants each answer, and the connection to be good for the next
// request where the server does not say that it closes it.
func TestEagerClient(t *testing.T) {
	t.Parallel()
	s := serve(t)
	in := http.Header{boxHeader: {s.box}, accessHeader: {s.token("access", s.box)}}
	call := http.Header{"Content-Type": {"application/json"}}
	maps.Copy(call, in)
	for name, tt := range map[string]struct {
		path   string
		header http.Header
		status int
		says   string // a part of the answer
	}{
		"no key":             {"/sandboxes", nil, 401, `"message":`},
		"a large document":   {"/sandboxes", http.Header{"X-Api-Key": {s.key}}, 413, `"message":`},
		"no token":           {"/files?path=/x", http.Header{boxHeader: {s.box}}, 401, `"message":`},
		"no user":            {"/files?path=/x&username=none", in, 400, `"message":`},
		"a call, no token":   {"/filesystem.Filesystem/Stat", http.Header{"Content-Type": {"application/json"}, boxHeader: {s.box}}, 401, `"message":`},
		"a large message":    {"/filesystem.Filesystem/Stat", call, 429, `"message":`},
		"a stream, no token": {streamInput, http.Header{"Content-Type": {"application/connect+json"}, boxHeader: {s.box}}, 200, `"code":"unauthenticated"`},
		"no such route":      {"/none", http.Header{"X-Api-Key": {s.key}}, 404, `"message":`},
	} {
		for _, chunked := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(time.Minute))
				in := bufio.NewReader(conn)
				for _, size := range []int{20 << 20, 0} {
					var body io.Reader = bytes.NewReader(make([]byte, size))
					if chunked {
						body = struct{ io.Reader }{body}
					}
					r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://localhost"+tt.path, body)
					for name, values := range tt.header {
						r.Header[name] = values
					}
					if err := r.Write(conn); err != nil {
						t.Fatalf("%d bytes: %v", size, err)
					}
					resp, err := http.ReadResponse(in, r)
					if err != nil {
						t.Fatalf("%d bytes: %v", size, err)
					}
					text, err := io.ReadAll(resp.Body)
					if err != nil || size > 0 && (resp.StatusCode != tt.status || !strings.Contains(string(text), tt.says)) {
						t.Errorf("%d bytes: %d %s, %v; want %d %s", size, resp.StatusCode, text, err, tt.status, tt.says)
					}
					if resp.Close {
						return
					}
				}
			})
		}
	}
}
