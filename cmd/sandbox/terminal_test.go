package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"sandbox/test/programs"
	"sandbox/test/rootfs"
)

// user is a user with a home.
type user struct {
	t   *testing.T
	env []string
}

// newUser returns a user, served by a daemon or working in process.
func newUser(t *testing.T, served bool) *user {
	home := t.TempDir()
	t.Cleanup(func() { removeBoxes(t, filepath.Join(home, "boxes")) })
	u := &user{t, append(os.Environ(), "HOME="+home, "SANDBOX_HOME="+filepath.Join(home, "boxes"), "SANDBOX_HELPER_DIR="+programs.Dir(), "TERM=vt100")}
	if served {
		s, err := serve(u.env)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if log, err := s.stop(unix.SIGTERM); err != nil {
				t.Errorf("the daemon: %v\n%s", err, log)
			}
		})
	}
	return u
}

// types starts a command line on a terminal of 100 x 30.
func (u *user) types(args ...string) (*exec.Cmd, *keyboard) {
	ctx, cancel := context.WithTimeout(u.t.Context(), time.Minute)
	u.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "sandbox", args...)
	cmd.Env = u.env
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 100, Rows: 30})
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { // also after a failure
		_ = tty.Close()
		if cmd.ProcessState == nil {
			_ = cmd.Wait()
		}
	})
	return cmd, &keyboard{t: u.t, user: tty}
}

// both runs a test in process and over a daemon.
func both(t *testing.T, test func(*testing.T, *user)) {
	t.Parallel()
	for name, served := range map[string]bool{"in process": false, "over a daemon": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newUser(t, served))
		})
	}
}

// TestTerminal is a user at a terminal with a shell in a box.
func TestTerminal(t *testing.T) {
	both(t, func(t *testing.T, u *user) {
		cmd, k := u.types("run", "-it", "-e", "PS1=ready> ", "--rootfs", rootfs.Busybox(t), "--", "sh")
		talk(t, k)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the shell ended by Ctrl-D: %v", err)
		}
	})
}

// TestAttachedShell is the same with the shell that attach starts.
func TestAttachedShell(t *testing.T) {
	both(t, func(t *testing.T, u *user) {
		create, k := u.types("create", "-n", "a", "-e", "PS1=ready> ", "--rootfs", rootfs.Busybox(t))
		k.expect("box_")
		if err := create.Wait(); err != nil {
			t.Fatal(err)
		}
		cmd, k := u.types("attach", "a")
		talk(t, k)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the shell ended by Ctrl-D: %v", err)
		}
	})
}

// talk is a conversation with a shell on a terminal.
func talk(t *testing.T, k *keyboard) {
	k.expect("ready> ")
	k.enter("stty size; echo $TERM")
	k.expect("30 100\r\nvt100\r\n")
	if err := pty.Setsize(k.user, &pty.Winsize{Cols: 120, Rows: 40}); err != nil {
		t.Fatal(err)
	}
	k.enter(`until [ "$(stty size)" = '40 120' ]; do :; done; echo re''sized`)
	k.expect("resized\r\n")
	k.enter(`sh -c "echo sl''eeping; exec sleep 60"`)
	k.expect("sleeping\r\n")
	k.keys("\x03")
	k.expect("ready> ")
	k.enter("echo code $?")
	k.expect("code 130\r\n")
	k.expect("ready> ") // where the shell reads: before that, Ctrl-D could be lost
	k.keys("\x04")
}

func TestTerminalIsGivenBackAfterASignal(t *testing.T) {
	both(t, func(t *testing.T, u *user) {
		cmd, k := u.types("run", "-it", "--rootfs", rootfs.Busybox(t), "--", "sh", "-c", "echo up; sleep 600")
		k.expect("up")
		if !k.raw() {
			t.Error("the terminal is not raw")
		}
		if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 128+int(unix.SIGTERM) {
			t.Errorf("the end: %v", err)
		}
		if k.raw() {
			t.Error("the terminal was left raw")
		}
	})
}

// TestTerminalIsGivenBackByADaemonThatDies: the connection breaks in the
// middle of a conversation.
func TestTerminalIsGivenBackByADaemonThatDies(t *testing.T) {
	t.Parallel()
	u := newUser(t, false)
	s, err := serve(u.env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = s.stop(unix.SIGKILL) })
	cmd, k := u.types("run", "-it", "--rootfs", rootfs.Busybox(t), "--", "sh", "-c", "echo up; sleep 600")
	k.expect("up")
	_, _ = s.stop(unix.SIGKILL) // it is killed: an error
	k.expect("sandbox: ")
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 125 {
		t.Errorf("the end: %v", err)
	}
	if k.raw() {
		t.Error("the terminal was left raw")
	}
}

// TestLoginAsksForTheKey without showing it.
func TestLoginAsksForTheKey(t *testing.T) {
	t.Parallel()
	u := newUser(t, false)
	cmd, k := u.types("auth", "login", "--url", "http://127.0.0.1:1")
	k.expect("API key: ")
	for k.mode().Lflag&unix.ECHO != 0 { // it is about to be switched off
		runtime.Gosched()
	}
	k.enter("sbx_live_secretsecretsecretsecretxyz")
	k.expect("stored a key")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if seen := k.all.String(); strings.Contains(seen, "secret") {
		t.Errorf("the terminal shows %q", seen)
	}
	cmd, k = u.types("auth", "login")
	k.expect("API key: ")
	for k.mode().Lflag&unix.ECHO != 0 {
		runtime.Gosched()
	}
	k.keys("\x03")
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("Ctrl-C: %v", err)
	}
	if k.mode().Lflag&unix.ECHO == 0 {
		t.Error("the terminal was left without echo")
	}
}

// keyboard is the user's side of a terminal.
type keyboard struct {
	t    *testing.T
	user *os.File
	seen strings.Builder // since the last expect
	all  strings.Builder
}

func (k *keyboard) enter(line string) { k.keys(line + "\n") }

func (k *keyboard) keys(keys string) {
	k.t.Helper()
	if _, err := k.user.WriteString(keys); err != nil {
		k.t.Fatal(err)
	}
}

// raw tells whether every key goes to the program as it is.
func (k *keyboard) raw() bool {
	mode := k.mode()
	return mode.Lflag&unix.ICANON == 0 || mode.Lflag&unix.ECHO == 0
}

func (k *keyboard) mode() *unix.Termios {
	k.t.Helper()
	mode, err := unix.IoctlGetTermios(int(k.user.Fd()), unix.TCGETS)
	if err != nil {
		k.t.Fatal(err)
	}
	return mode
}

// expect reads until text was seen since the last expect.
func (k *keyboard) expect(text string) {
	k.t.Helper()
	if err := k.user.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		k.t.Fatal(err)
	}
	p := make([]byte, 4096)
	for !strings.Contains(k.seen.String(), text) {
		n, err := k.user.Read(p)
		if err != nil {
			k.t.Fatalf("want %q, saw %q: %v", text, k.seen.String(), err)
		}
		k.seen.Write(p[:n])
		k.all.Write(p[:n])
	}
	_, rest, _ := strings.Cut(k.seen.String(), text)
	k.seen.Reset()
	k.seen.WriteString(rest)
}
