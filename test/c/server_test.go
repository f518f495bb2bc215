package c_test

import (
	"io"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// serve starts a daemon on the host's home, which ends with the test, and returns the
// URL of its socket.
func (h host) serve(t *testing.T) string {
	t.Helper()
	dir, err := library()
	if err != nil {
		t.Fatal(err)
	}
	daemon := h.command(t, filepath.Join(dir, "sandbox"), "serve", "--listen", "none")
	daemon.Env = append(daemon.Env, "HOME="+h.home)
	stderr, err := daemon.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	lines := begin(t, daemon, stderr)
	lines.expect("sandbox: ready on ")
	said := make(chan struct{})
	go func() { // or its log would fill the pipe, and it would wait
		defer close(said)
		_, _ = io.Copy(io.Discard, stderr)
	}()
	t.Cleanup(func() { end(t, daemon, said) })
	return "unix://" + filepath.Join(h.home, "sandbox.sock")
}

// end has a daemon end by itself; said is closed when it has said all.
func end(t *testing.T, daemon *exec.Cmd, said <-chan struct{}) {
	t.Helper()
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
		return
	}
	<-said
	if err := daemon.Wait(); err != nil {
		t.Errorf("the daemon: %v", err)
	}
}

// TestOnServer runs programs on a server that run on a home too: they find no
// difference.
func TestOnServer(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"handles", "lifecycle", "exec", "execution", "files", "text", "callback", "threads", "leaks"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			cmd := h.command(t, compile(t, "programs/"+name+".c", sanitizers...))
			cmd.Env = append(cmd.Env, "SERVER="+h.serve(t))
			if out := run(t, cmd); out != "" {
				t.Errorf("it wrote %q", out)
			}
		})
	}
}
