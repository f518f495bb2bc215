package httpd_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/httpd"
)

// eager sends requests as many clients do: it reads nothing of the answer before the
// whole body is written.
type eager struct {
	net.Conn
	in *bufio.Reader
}

func dialEager(t *testing.T, network, address string) eager {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), network, address)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	return eager{conn, bufio.NewReader(conn)}
}

// send sends r and reads the answer. It returns whether the server closes then.
func (e eager) send(r *http.Request) (status int, closes bool, err error) {
	if err := r.Write(e); err != nil {
		return 0, false, err
	}
	resp, err := http.ReadResponse(e.in, r)
	if err != nil {
		return 0, false, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Close, err
}

// answersFirst is a program that answers before it reads the body.
func answersFirst(t *testing.T, answer string) (port int) {
	return raw(t, func(conn net.Conn) {
		in := bufio.NewReader(conn)
		if _, err := http.ReadRequest(in); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nConnection: close\r\n"+answer)
		}
		_, _ = io.Copy(io.Discard, in)
	})
}

// taken returns a port that nobody listens on, and that nobody else gets: a socket that
// does not listen is bound to it.
func taken(t *testing.T) (port int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { must(t, unix.Close(fd)) })
	must(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := unix.Getsockname(fd)
	must(t, err)
	return name.(*unix.SockaddrInet4).Port
}

const inChunks = "Transfer-Encoding: chunked\r\n\r\n3\r\nno\n\r\n0\r\n\r\n"

// tooMuch is more than net/http reads of a body that no handler reads, and than the
// buffers of a connection hold.
const tooMuch = 16 << 20

// TestEagerClient sends large bodies that nothing reads to their end. It wants the
// answer to each, and the connection to be good for the next request where the server
// does not say that it closes it.
func TestEagerClient(t *testing.T) {
	t.Parallel()
	s := start(t)
	box := "/v1/boxes/" + s.create(`{}`)
	stopped := "/v1/boxes/" + s.create(`{}`)
	s.ask("POST", stopped+":stop?timeout_seconds=0", "").want(t, 200, "")
	sized, chunked := answersFirst(t, "Content-Length: 3\r\n\r\nno\n"), answersFirst(t, inChunks)
	nobody := taken(t)
	for name, tt := range map[string]struct {
		method, path, kind, key string
		status                  int
		closes                  bool
	}{
		"no key":              {"POST", box + "/files/upload", "multipart/form-data; boundary=b", "wrong", 401, false},
		"no key, by the file": {"PUT", box + "/files?path=/x", "", "wrong", 401, false},
		"no such box":         {"PUT", "/v1/boxes/none/files?path=/x", "", s.key, 404, false},
		"no such route":       {"POST", "/v1/none", "", s.key, 404, false},
		"a stopped box":       {"PUT", stopped + "/files?path=/x", "", s.key, 409, false},
		"no form":             {"POST", box + "/files/upload", "multipart/form-data", s.key, 400, false},
		"a bad form":          {"POST", box + "/files/upload", "multipart/form-data; boundary=b", s.key, 400, false},
		"a large document":    {"POST", "/v1/boxes", "application/json", s.key, 413, false},
		"a bad query":         {"PUT", box + "/files?path=/x&mode=9", "", s.key, 422, false},
		"a body of a GET":     {"GET", "/v1/me", "", s.key, 200, false},
		"a port, no key":      {"POST", fmt.Sprintf("%s/ports/%d/", box, sized), "", "wrong", 401, false},
		"a port, no program":  {"POST", fmt.Sprintf("%s/ports/%d/", box, nobody), "", s.key, 502, false},
		"a program":           {"POST", fmt.Sprintf("%s/ports/%d/", box, sized), "", s.key, 413, false},
		"a program, chunked":  {"POST", fmt.Sprintf("%s/ports/%d/", box, chunked), "", s.key, 413, true},
	} {
		for _, unknown := range []bool{false, true} {
			for network, address := range map[string]string{"tcp": strings.TrimPrefix(s.url, "http://"), "unix": s.socket} {
				if network == "unix" && tt.key == "wrong" { // the mode of the socket is the key there
					continue
				}
				t.Run(fmt.Sprintf("%s, %s, length unknown %v", name, network, unknown), func(t *testing.T) {
					t.Parallel()
					conn := dialEager(t, network, address)
					var body io.Reader = bytes.NewReader(make([]byte, tooMuch))
					if unknown {
						body = struct{ io.Reader }{body}
					}
					r, err := http.NewRequestWithContext(t.Context(), tt.method, "http://x"+tt.path, body)
					must(t, err)
					r.Header.Set("Authorization", "Bearer "+tt.key)
					r.Header.Set("Content-Type", tt.kind)
					if status, closes, err := conn.send(r); err != nil || status != tt.status || closes != tt.closes {
						t.Fatalf("%d, closes %v, %v; want %d", status, closes, err, tt.status)
					}
					if tt.closes {
						return
					}
					r, err = http.NewRequestWithContext(t.Context(), "GET", "http://x/v1/me", nil)
					must(t, err)
					r.Header.Set("Authorization", "Bearer "+s.key)
					if status, _, err := conn.send(r); err != nil || status != 200 {
						t.Errorf("the next request: %d, %v", status, err)
					}
				})
			}
		}
	}
}

// TestEndlessClient goes on sending after the answer, and wants the server to end it.
func TestEndlessClient(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *httpd.Config) { c.Timeout = time.Second })
	conn := dialEager(t, "tcp", strings.TrimPrefix(s.url, "http://"))
	_, err := io.WriteString(conn, "PUT /v1/boxes/x/files HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
	must(t, err)
	chunk := []byte(fmt.Sprintf("%x\r\n%s\r\n", 1<<16, strings.Repeat("x", 1<<16)))
	for err == nil {
		_, err = conn.Write(chunk)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server takes what it does not want without end")
	}
}

// TestSilentClient sends a part of its body and then nothing. It wants the whole answer
// of a program, without a length too, and then the end of the connection.
func TestSilentClient(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *httpd.Config) { c.Timeout = time.Second })
	box := s.create(`{}`)
	for _, answer := range []string{"Content-Length: 3\r\n\r\nno\n", inChunks} {
		conn := dialEager(t, "unix", s.socket)
		_, err := fmt.Fprintf(conn, "PUT /v1/boxes/%s/ports/%d/ HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\nx", box, answersFirst(t, answer), tooMuch)
		must(t, err)
		resp, err := http.ReadResponse(conn.in, nil)
		must(t, err)
		defer resp.Body.Close()
		if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "no\n" || resp.StatusCode != 413 {
			t.Errorf("%d %q, %v", resp.StatusCode, text, err)
		}
		if rest, err := io.ReadAll(conn.in); err != nil || len(rest) > 0 {
			t.Errorf("behind the answer: %q, %v", rest, err)
		}
	}
}
