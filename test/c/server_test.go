package c_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// served is a daemon on a home.
type served struct {
	*exec.Cmd
	said        chan struct{} // closed when it has said all
	socket, tcp string        // URLs
}

// serve starts a daemon on the host's home, which ends with the test.
func (h host) serve(t *testing.T, flags ...string) *served {
	t.Helper()
	dir, err := library()
	if err != nil {
		t.Fatal(err)
	}
	d := &served{Cmd: h.command(t, filepath.Join(dir, "sandbox"), append([]string{"serve", "--listen", "none"}, flags...)...)}
	d.Env = append(d.Env, "SANDBOX_CHDB_LIB=/none") // no log engine
	stderr, err := d.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	lines := begin(t, d.Cmd, stderr)
	ready := lines.expect("sandbox: ready on ")
	d.said, d.socket = make(chan struct{}), "unix://"+filepath.Join(h.home, "sandbox.sock")
	d.tcp = regexp.MustCompile(`http://[0-9.:]+`).FindString(ready)
	go func() { // or its log would fill the pipe, and it would wait
		defer close(d.said)
		_, _ = io.Copy(io.Discard, stderr)
	}()
	t.Cleanup(func() { d.end(t) })
	return d
}

// end has the daemon end by itself, unless it was killed.
func (d *served) end(t *testing.T) {
	t.Helper()
	if d.ProcessState != nil {
		return
	}
	if err := d.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
		return
	}
	<-d.said
	if err := d.Wait(); err != nil {
		t.Errorf("the daemon: %v", err)
	}
}

// kill ends the daemon at once.
func (d *served) kill() {
	_ = d.Process.Kill()
	<-d.said
	_ = d.Wait()
}

// TestOnServer runs programs on a server that run on a home too: they find the same.
func TestOnServer(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"handles", "lifecycle", "exec", "execution", "files", "ports", "snapshots", "build", "text", "callback", "threads", "leaks"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			cmd := h.command(t, compile(t, "programs/"+name+".c", sanitizers...))
			cmd.Env = append(cmd.Env, "SERVER="+h.serve(t).socket)
			if out := run(t, cmd); out != "" {
				t.Errorf("it wrote %q", out)
			}
		})
	}
}

// TestOpen: where sandbox_runtime_open goes, in each case that the command line has.
func TestOpen(t *testing.T) {
	t.Parallel()
	h, other := newHost(t), newHost(t)
	d := other.serve(t, "--listen", "127.0.0.1:0", "--prefix", "lab")
	dir, err := library()
	if err != nil {
		t.Fatal(err)
	}
	sandbox := func(args ...string) string {
		cmd := other.command(t, filepath.Join(dir, "sandbox"), append([]string{"--url", d.socket}, args...)...)
		cmd.Env = append(cmd.Env, "SANDBOX_REST_PATH_PREFIX=lab")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	key := sandbox("keys", "create", "c", "--permission", "Boxes")
	sandbox("create", "-n", "there", "--rootfs", other.rootfs)
	defer sandbox("rm", "-f", "there")
	home := t.TempDir()
	credentials := fmt.Sprintf("[profiles.work]\nurl = %q\napi_key = %q\npath_prefix = \"lab\"\n", d.tcp, key)
	if err := os.Mkdir(filepath.Join(home, ".sandbox"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".sandbox", "credentials.toml"), []byte(credentials), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := h.command(t, compile(t, "programs/open.c", sanitizers...))
	cmd.Env = append(cmd.Env, "HOME="+home, "TCP="+d.tcp, "KEY="+key, "DAEMON_HOME="+other.home)
	if out := run(t, cmd); out != "" {
		t.Errorf("it wrote %q", out)
	}
}

// TestServerGoesAway: a daemon is killed while a program reads from it.
func TestServerGoesAway(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	d := h.serve(t)
	program := h.command(t, compile(t, "programs/gone.c", sanitizers...))
	program.Env = append(program.Env, "SERVER="+d.socket)
	stdout, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errors strings.Builder
	program.Stderr = &errors
	begin(t, program, bufio.NewReader(stdout)).expect("end it")
	d.kill()
	_, _ = io.Copy(io.Discard, stdout)
	if err := program.Wait(); err != nil {
		t.Errorf("the program: %v\n%s", err, errors.String())
	}
	again := h.serve(t) // the box was left to the server
	dir, _ := library()
	sandbox := func(args ...string) string {
		return strings.TrimSpace(run(t, h.command(t, filepath.Join(dir, "sandbox"), append([]string{"--url", again.socket}, args...)...)))
	}
	run(t, h.command(t, filepath.Join(dir, "sandbox"), "--url", again.socket, "rm", "-f", sandbox("ls", "-q")))
}
