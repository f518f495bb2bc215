//go:build kubernetes

package suite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandbox/client"
	"sandbox/core/options"
)

// server is a daemon on a namespace, with a home of its own.
type server struct {
	home string
	cmd  *exec.Cmd
	*client.Client
}

// serve starts a daemon, which is killed when the test ends. flags come behind its own.
func serve(t testing.TB, namespace, home string, flags ...string) *server {
	t.Helper()
	s := &server{home: home}
	args := append([]string{
		"serve", "--listen", "none", "--engine", "kubernetes", "--namespace", namespace, "--pod-image", program, "--reach", reach(), "--no-console",
	}, flags...)
	s.cmd = exec.Command(filepath.Join(os.Getenv("SANDBOX_HELPER_DIR"), "sandbox"), args...)
	s.cmd.Env = append(os.Environ(), "SANDBOX_HOME="+home)
	said, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready, lines := make(chan struct{}), &bytes.Buffer{}
	go func() {
		buf := make([]byte, 32<<10)
		for told := false; ; {
			n, err := said.Read(buf)
			lines.Write(buf[:n])
			if !told && bytes.Contains(lines.Bytes(), []byte("ready on")) {
				told = true
				close(ready)
			}
			if err != nil {
				return
			}
		}
	}()
	select {
	case <-ready:
	case <-time.After(time.Minute):
		t.Fatalf("the server is not ready: %s", lines)
	}
	t.Cleanup(s.kill)
	s.Client, err = client.New(client.Options{URL: "unix://" + filepath.Join(home, "sandbox.sock")})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func reach() string {
	if r := os.Getenv("SANDBOX_TEST_REACH"); r != "" {
		return r
	}
	return "direct"
}

// home returns a home whose configuration lets the cluster use the images that it has.
func newHome(t testing.TB) string {
	t.Helper()
	home := t.TempDir()
	config := "[kubernetes]\npull_policy = \"Never\"\n"
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}

func plain() options.Box {
	o := options.Defaults()
	o.Image, o.CPUs, o.MemoryMiB, o.AutoRemove = "localhost/busybox:1", 1, 128, false
	return o
}

// TestTwoServers works on the boxes of one namespace through two servers.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	a, b := serve(t, ns, newHome(t)), serve(t, ns, newHome(t))
	o := plain()
	o.Name, o.Env = "shared", map[string]string{"WHO": "both"}
	made, err := a.CreateBox(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if seen, err := b.Box(t.Context(), "shared"); err == nil && seen.ID == made.ID {
			break
		}
		if t.Context().Err() != nil {
			t.Fatal("the other server does not see the box")
		}
	}
	for name, s := range map[string]*server{"the one that made it": a, "the other": b} {
		e, err := s.StartExec(t.Context(), "shared", options.Exec{Cmd: []string{"sh", "-c", "echo $WHO"}})
		if err != nil {
			t.Fatal(name, err)
		}
		var out strings.Builder
		if output(t, s.Client, made.ID, e.ID, &out); out.String() != "both\n" {
			t.Errorf("%s: %q", name, out.String())
		}
	}
	if _, err := b.CreateBox(t.Context(), o); err == nil {
		t.Error("two boxes have one name")
	}
	if _, err := b.RemoveBox(t.Context(), made.ID, true); err != nil {
		t.Error(err)
	}
}

// flood is what the command of TestKilledServer prints: lines of numbers.
const flood = 2_000_000

// TestKilledServer kills a server again and again while a command prints. The server
// that follows on its home has all of the output, and no byte of it twice.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	ns, home := namespace(t), newHome(t)
	s := serve(t, ns, home)
	box, err := s.CreateBox(t.Context(), plain())
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.StartExec(t.Context(), box.ID, options.Exec{Cmd: []string{"seq", fmt.Sprint(flood)}})
	if err != nil {
		t.Fatal(err)
	}
	const kills = 5
	for range kills {
		time.Sleep(100 * time.Millisecond) // so that some of it has been printed, and not all
		s.kill()
		s = serve(t, ns, home)
	}
	want := sha256.New()
	for i := 1; i <= flood; i++ {
		_, _ = fmt.Fprintln(want, i)
	}
	got := sha256.New()
	n := output(t, s.Client, box.ID, e.ID, got)
	if hex.EncodeToString(got.Sum(nil)) != hex.EncodeToString(want.Sum(nil)) {
		t.Errorf("%d bytes came, and not those that were printed", n)
	}
}

// output copies the whole stdout of an exec to w.
func output(t testing.TB, s *client.Client, box, id string, w io.Writer) (n int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	session, err := s.Attach(ctx, box, id, client.AttachOptions{Observe: true})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	_, err = session.Stream(ctx, func(stderr bool, p []byte) error {
		if !stderr {
			n += int64(len(p))
			_, _ = w.Write(p)
		}
		return nil
	})
	if err != nil {
		t.Errorf("after %d bytes: %v", n, err)
	}
	return n
}
