package rootless_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandbox/test/account"
	"sandbox/test/programs"
)

// sandbox runs the command line as the user.
func (u user) sandbox(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := u.Command(ctx, u.Home, append([]string{"env", "PATH=" + u.path, filepath.Join(programs.Dir(), "sandbox"), "--local"}, args...)...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err = cmd.Run()
	return out.String(), complaint.String(), err
}

// mustSandbox is sandbox that has to succeed. It returns the standard output.
func (u user) mustSandbox(t *testing.T, args ...string) string {
	t.Helper()
	out, complaint, err := u.sandbox(t, args...)
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(u.Home, ".sandbox/engine/shim.log"))
		t.Fatalf("sandbox %q: %v: %s\n%s", args, err, complaint, log)
	}
	return out
}

// request asks a server for its page, and prints what comes in 5 seconds. The wget of
// Debian's static busybox does not run in a box.
const request = `printf 'GET / HTTP/1.0\r\n\r\n' | timeout 5 nc -w 3 "$0" "$1"`

// fromHost returns what a server answers the user in the network namespace.
func (u user) fromHost(t *testing.T, server string) string {
	t.Helper()
	host, port, _ := strings.Cut(server, ":")
	out, _ := u.Command(t.Context(), u.Home, "busybox", "sh", "-c", request, host, port).Output() // it fails where nobody listens
	return string(out)
}

// fromBox returns what a server answers a program in the box "b".
func (u user) fromBox(t *testing.T, server string) string {
	t.Helper()
	host, port, _ := strings.Cut(server, ":")
	out, _, _ := u.sandbox(t, "exec", "b", "--", "sh", "-c", request, host, port) // it fails where it may not connect
	return out
}

// serve has a server answer with a text at a port of all addresses of a namespace, and
// returns a function that ends it.
func (u user) serve(t *testing.T, in account.Netns, port, text string) (end func()) {
	t.Helper()
	dir := filepath.Join(u.Home, "www"+port)
	must(t, os.Mkdir(dir, 0o755))                                                     //nolint:gosec // for the user
	must(t, os.WriteFile(filepath.Join(dir, "index.html"), []byte(text+"\n"), 0o644)) //nolint:gosec // for the user
	cmd := exec.Command("nsenter", in.Option(), "busybox", "httpd", "-f", "-p", port, "-h", dir)
	must(t, cmd.Start())
	return func() { _, _ = cmd.Process.Kill(), cmd.Wait() }
}

func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %q: %v: %s", program, args, err, out)
	}
	return string(out)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
