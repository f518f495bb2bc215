package c_test

import (
	"bufio"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSharedHome: a C program, a daemon and the command line on one home. The
// command line shows and stops the program's box over REST, and the program
// uses a box that was made there.
func TestSharedHome(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir, err := library()
	if err != nil {
		t.Fatal(err)
	}
	sandbox := func(args ...string) *exec.Cmd {
		return h.command(t, filepath.Join(dir, "sandbox"), args...)
	}
	h.serve(t)
	program := h.command(t, compile(t, "programs/shared.c", sanitizers...))
	stdout, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errors strings.Builder
	program.Stderr = &errors
	says := begin(t, program, stdout)
	says.expect("up")
	run(t, sandbox("create", "-n", "theirs", "--rootfs", h.rootfs))
	run(t, sandbox("exec", "theirs", "--", "sh", "-c", "echo made >/made"))
	for _, name := range []string{"ours", "theirs"} {
		if out := run(t, sandbox("ls", "-s", "running")); !strings.Contains(out, " "+name+" ") {
			t.Errorf("ls does not show %s:\n%s", name, out)
		}
	}
	run(t, sandbox("stop", "-t", "0", "ours"))
	_ = stdin.Close()
	says.expect("made")
	_, _ = io.Copy(io.Discard, stdout)
	if err := program.Wait(); err != nil {
		t.Fatalf("the program: %v\n%s", err, errors.String())
	}
	if out := run(t, sandbox("ls", "-q")); out != "" {
		t.Errorf("left: %s", out)
	}
}

// speech is what a program that runs says, line by line.
type speech struct {
	t     *testing.T
	lines *bufio.Scanner
}

// begin starts a program, which ends with the test.
func begin(t *testing.T, cmd *exec.Cmd, says io.Reader) speech {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil { // after a failure
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return speech{t, bufio.NewScanner(says)}
}

// expect reads up to a line that begins so, and returns it.
func (s speech) expect(begin string) string {
	s.t.Helper()
	for s.lines.Scan() {
		if strings.HasPrefix(s.lines.Text(), begin) {
			return s.lines.Text()
		}
	}
	s.t.Fatalf("it ended before it said %q", begin)
	return ""
}
