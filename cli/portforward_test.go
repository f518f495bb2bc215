package cli

import (
	"bufio"
	"context"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sandbox/core/fault"
)

// echo answers what comes, with the client's end behind it, and returns its port, which
// is one of every box of a fake host.
func echo(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				all, _ := io.ReadAll(conn)
				_, _ = conn.Write(append(all, "|end"...))
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// TestPortForward leads connections to a port of a box, and wants each direction to end
// for itself, and the verb to end with its signal.
func TestPortForward(t *testing.T) {
	t.Parallel()
	port := strconv.Itoa(echo(t))
	for name, h := range map[string]*host{"in process": newHost(t), "on a server": newServed(t)} {
		h.create("-n", "a")
		ctx, cancel := context.WithCancelCause(t.Context())
		out, to := io.Pipe()
		var errs strings.Builder
		code := make(chan int, 1)
		go func() {
			code <- h.run(ctx, Stdio{strings.NewReader(""), to, &errs}, "port-forward", "a", "0:"+port, "[::1]:0:1")
			_ = to.Close()
		}()
		lines := bufio.NewScanner(out)
		var open []string
		for range 2 {
			lines.Scan()
			open = append(open, regexp.MustCompile(`^(127\.0\.0\.1|\[::1\]):\d+`).FindString(lines.Text()))
		}
		if got := said(t, open[0]); got != "hello|end" {
			t.Errorf("%s: got %q", name, got)
		}
		if got := said(t, open[1]); got != "" {
			t.Errorf("%s, where nobody listens: got %q", name, got)
		}
		cancel(Signal(syscall.SIGINT))
		if got := <-code; got != 130 || !strings.Contains(errs.String(), "nothing listens on port 1 of box") {
			t.Errorf("%s: exit %d, %q", name, got, errs.String())
		}
	}
}

// said says hello to an address and returns what it answers.
func said(t *testing.T, address string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "hello")
	_ = conn.(*net.TCPConn).CloseWrite()
	got, _ := io.ReadAll(conn)
	return string(got)
}

func TestParseForward(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]forward{
		"80":                {"127.0.0.1:80", 80},
		"8080:80":           {"127.0.0.1:8080", 80},
		"0:65535":           {"127.0.0.1:0", 65535},
		"0.0.0.0:8080:80":   {"0.0.0.0:8080", 80},
		"[::1]:8080:80":     {"[::1]:8080", 80},
		"localhost:8080:80": {"localhost:8080", 80},
	} {
		if got, err := parseForward(arg); err != nil || got != want {
			t.Errorf("%q: %+v, %v", arg, got, err)
		}
	}
	for _, arg := range []string{"", ":", "0", "65536", "-1", "x", "80:", ":80", "x:80", "65536:80", "80:0", "80:65536", "1:2:3:4", "::1:80:80", "a:b:c"} {
		if _, err := parseForwards([]string{arg}); !fault.Is(err, fault.InvalidArgument) {
			t.Errorf("%q: %v", arg, err)
		}
	}
}
