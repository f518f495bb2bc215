package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"sandbox/test/rootfs"
)

// onTerminal starts a command line on a terminal of 100 x 30.
func onTerminal(t *testing.T, args ...string) (*exec.Cmd, *keyboard) {
	home := t.TempDir()
	t.Cleanup(func() { removeBoxes(t, home) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "sandbox", args...)
	cmd.Env = append(os.Environ(), "SANDBOX_HOME="+home, "SANDBOX_HELPER_DIR="+helpers(t), "TERM=vt100")
	user, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 100, Rows: 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = user.Close() })
	return cmd, &keyboard{t: t, user: user}
}

// TestTerminal is a user at a terminal with a shell in a box.
func TestTerminal(t *testing.T) {
	t.Parallel()
	cmd, k := onTerminal(t, "run", "-it", "-e", "PS1=ready> ", "--rootfs", rootfs.Busybox(t), "--", "sh")
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
	if err := cmd.Wait(); err != nil {
		t.Errorf("the shell ended by Ctrl-D: %v", err)
	}
}

func TestTerminalIsGivenBackAfterASignal(t *testing.T) {
	t.Parallel()
	cmd, k := onTerminal(t, "run", "-it", "--rootfs", rootfs.Busybox(t), "--", "sh", "-c", "echo up; sleep 600")
	k.expect("up")
	if mode := k.mode(); mode.Lflag&unix.ICANON != 0 {
		t.Errorf("the terminal is not raw: %+v", mode)
	}
	if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 128+int(unix.SIGTERM) {
		t.Errorf("the end: %v", err)
	}
	if mode := k.mode(); mode.Lflag&unix.ICANON == 0 || mode.Lflag&unix.ECHO == 0 {
		t.Errorf("the terminal was left raw: %+v", mode)
	}
}

// keyboard is the user's side of a terminal.
type keyboard struct {
	t    *testing.T
	user *os.File
	seen strings.Builder
}

func (k *keyboard) enter(line string) { k.keys(line + "\n") }

func (k *keyboard) keys(keys string) {
	k.t.Helper()
	if _, err := k.user.WriteString(keys); err != nil {
		k.t.Fatal(err)
	}
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
	}
	_, rest, _ := strings.Cut(k.seen.String(), text)
	k.seen.Reset()
	k.seen.WriteString(rest)
}
