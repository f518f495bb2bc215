package enginetest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/members"
)

func output(t *testing.T, s *suite) {
	box := s.box(t)
	for script, w := range map[string]struct{ out, err string }{
		"true":                             {"", ""},
		"echo out; echo err >&2":           {"out\n", "err\n"},
		`printf 'no end of line'`:          {"no end of line", ""},
		`printf '\000\377\r\n' >&2`:        {"", "\x00\xff\r\n"},
		"for i in 1 2 3; do echo $i; done": {"1\n2\n3\n", ""},
	} {
		if r := s.shell(t, box, script); r.out != w.out || r.err != w.err {
			t.Errorf("%s: got %q and %q, want %q and %q", script, r.out, r.err, w.out, w.err)
		}
	}
}

// binaryData tests that 10 MiB that are sent to a command come back unchanged,
// and that no byte is added.
func binaryData(t *testing.T, s *suite) {
	data := make([]byte, 10<<20)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(data) // never fails
	e := s.start(t, s.box(t), options.Exec{Cmd: []string{"cat"}, Stdin: true})
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := io.Copy(e.Stdin(), bytes.NewReader(data)); err != nil {
			t.Error(err)
		}
		if err := e.Stdin().Close(); err != nil {
			t.Error(err)
		}
	})
	r := s.finish(t, e)
	wg.Wait()
	r.wants(t, exited(0))
	if r.out != string(data) {
		t.Errorf("%d bytes came back of %d, or not the same", len(r.out), len(data))
	}
}

func ends(t *testing.T, s *suite) {
	box := s.box(t)
	for script, w := range map[string]api.ExitStatus{
		"exit 0":        exited(0),
		"exit 1":        exited(1),
		"exit 42":       exited(42),
		"exit 255":      exited(255),
		"kill -KILL $$": ended(api.ExecFailed, api.ReasonSignaled, 9),
		"kill -TERM $$": ended(api.ExecFailed, api.ReasonSignaled, 15),
		"kill -SEGV $$": ended(api.ExecFailed, api.ReasonSignaled, 11),
	} {
		s.shell(t, box, script).wants(t, w)
	}
}

func input(t *testing.T, s *suite) {
	box := s.box(t)
	none := s.run(t, box, options.Exec{Cmd: []string{"cat"}})
	none.wants(t, exited(0))

	e := s.start(t, box, options.Exec{Cmd: sh("read line; echo got $line; cat; echo end"), Stdin: true})
	write(t, e, "one\n")
	r := s.watch(t, e, once(func(string) {
		write(t, e, "two\n")
		_ = e.Stdin().Close()
	}))
	if r.wants(t, exited(0)); r.out != "got one\ntwo\nend\n" {
		t.Errorf("got %q", r.out)
	}
}

func write(t *testing.T, e *core.Exec, text string) {
	t.Helper()
	if _, err := e.Stdin().WriteString(text); err != nil {
		t.Error(err)
	}
}

func terminal(t *testing.T, s *suite) {
	box := s.box(t)
	r := s.run(t, box, options.Exec{Cmd: sh("test -t 0 && test -t 1 && test -t 2 && stty size; echo $TERM >&2"), TTY: true, Cols: 100, Rows: 40})
	r.wants(t, exited(0))
	if lines := strings.Split(r.out, "\r\n"); len(lines) != 3 || lines[0] != "40 100" || lines[1] == "" || r.err != "" {
		t.Errorf("got %q, %q", r.out, r.err)
	}
	if r := s.run(t, box, options.Exec{Cmd: sh("stty size"), TTY: true}); r.out != "24 80\r\n" {
		t.Errorf("without a size: got %q", r.out)
	}
	if r := s.shell(t, box, "test -t 0 || test -t 1 || test -t 2 || echo none$TERM"); r.out != "none\n" {
		t.Errorf("without a terminal: got %q", r.out)
	}

	// The terminal turns Ctrl-C into a signal to the command.
	e := s.start(t, box, options.Exec{Cmd: sh("trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.05; done"), TTY: true, Stdin: true})
	r = s.watch(t, e, once(func(string) { write(t, e, "\x03") }))
	if r.wants(t, exited(3)); !strings.Contains(r.out, "caught") {
		t.Errorf("after Ctrl-C: got %q", r.out)
	}
}

func terminalSize(t *testing.T, s *suite) {
	ctx := s.context(t)
	e := s.start(t, s.box(t), options.Exec{Cmd: sh("echo ready; read line; stty size"), TTY: true, Stdin: true})
	r := s.watch(t, e, once(func(string) {
		if err := e.Resize(ctx, 132, 50); err != nil {
			t.Error(err)
		}
		write(t, e, "\n")
	}))
	if !strings.Contains(r.out, "50 132\r\n") {
		t.Errorf("got %q", r.out)
	}
}

// hangUp tests that HangUp ends the whole process tree of a terminal: at once
// what obeys the signal, and after the grace what does not.
func hangUp(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	script := "trap 'exit 8' HUP; echo ready; while :; do sleep 0.05; done"
	e := s.start(t, box, options.Exec{Cmd: sh(script), TTY: true, Stdin: true})
	r := s.watch(t, e, once(func(string) {
		if err := e.HangUp(ctx, time.Minute); err != nil {
			t.Error(err)
		}
	}))
	r.wants(t, exited(8))
	script = "trap '' HUP; echo ready; while :; do sleep 0.05; done"
	e = s.start(t, box, options.Exec{Cmd: sh(script), TTY: true, Stdin: true})
	r = s.watch(t, e, once(func(string) {
		if err := e.HangUp(ctx, 50*time.Millisecond); err != nil {
			t.Error(err)
		}
	}))
	if r.Signal != 9 {
		t.Errorf("what ignores it ended as %+v", r.ExitStatus)
	}
}

// environment tests the order of section 3 of the contract: of several settings
// of a variable, the last one wins.
func environment(t *testing.T, s *suite) {
	box := s.box(t, func(o *options.Box) {
		s.set(o)
		o.User = "root"
		o.Env = map[string]string{"FROM": "box", "ONLY_BOX": "2", "BOTH": "box"}
	})
	r := s.run(t, box, options.Exec{
		Cmd: sh(`echo "$FROM $ONLY_IMAGE $ONLY_BOX $BOTH $EMPTY. $HOME $USER ${PATH:+path} $TERM."`),
		Env: map[string]string{"BOTH": "exec", "EMPTY": ""},
	})
	if w := "box 1 2 exec . /root root path .\n"; r.out != w {
		t.Errorf("got %q, want %q; %s", r.out, w, r.err)
	}
	r = s.run(t, box, options.Exec{Cmd: sh("echo $HOME"), Env: map[string]string{"HOME": "/exec"}})
	if r.out != "/exec\n" {
		t.Errorf("HOME of the exec: got %q", r.out)
	}
}

func workingDirectory(t *testing.T, s *suite) {
	plain := s.box(t)
	image := s.box(t, s.set)
	set := s.box(t, s.set, func(o *options.Box) { o.WorkingDir = "/etc" })
	for w, tt := range map[string]struct {
		box *core.Box
		dir string
	}{"/": {plain, ""}, "/usr": {image, ""}, "/etc": {set, ""}, "/tmp": {set, "/tmp"}} {
		if r := s.run(t, tt.box, options.Exec{Cmd: []string{"pwd"}, WorkingDir: tt.dir}); r.out != w+"\n" {
			t.Errorf("got %q, want %s; %s", r.out, w, r.err)
		}
	}
}

func users(t *testing.T, s *suite) {
	plain := s.box(t)
	image := s.box(t, s.set)
	for _, tt := range []struct {
		box        *core.Box
		user, want string
	}{
		{plain, "", "0:0"}, {plain, "nobody", "65534:65534"}, {plain, "65534", "65534:65534"},
		{plain, "4321", "4321:0"}, {plain, "4321:1234", "4321:1234"},
		{image, "", "65534:65534"}, {image, "root", "0:0"},
	} {
		r := s.run(t, tt.box, options.Exec{Cmd: sh("echo $(id -u):$(id -g)"), User: tt.user, WorkingDir: "/"})
		if r.out != tt.want+"\n" {
			t.Errorf("user %q: got %q, want %s; %s", tt.user, r.out, tt.want, r.err)
		}
	}
}

// cannotBeStarted tests that a command that can't be started is an exec that
// has ended.
func cannotBeStarted(t *testing.T, s *suite) {
	box := s.box(t)
	for name, tt := range map[string]struct {
		exec   options.Exec
		reason api.Reason
		code   int
		says   string
	}{
		"no such name":      {options.Exec{Cmd: []string{"nosuchcommand"}}, api.ReasonNotFound, 127, "nosuchcommand"},
		"no such path":      {options.Exec{Cmd: []string{"/no/such/command"}}, api.ReasonNotFound, 127, "/no/such/command"},
		"not executable":    {options.Exec{Cmd: []string{"/etc/passwd"}}, api.ReasonNotExecutable, 126, "/etc/passwd"},
		"a directory":       {options.Exec{Cmd: []string{"/etc"}}, api.ReasonNotExecutable, 126, "/etc"},
		"on a terminal":     {options.Exec{Cmd: []string{"nosuchcommand"}, TTY: true}, api.ReasonNotFound, 127, ""},
		"with input":        {options.Exec{Cmd: []string{"nosuchcommand"}, Stdin: true}, api.ReasonNotFound, 127, "nosuchcommand"},
		"working directory": {options.Exec{Cmd: []string{"true"}, WorkingDir: "/no/such/directory"}, api.ReasonNotExecutable, 126, "/no/such/directory"},
		"user":              {options.Exec{Cmd: []string{"true"}, User: "nosuchuser"}, api.ReasonNotExecutable, 126, "nosuchuser"},
	} {
		r := s.run(t, box, tt.exec)
		message := r.Message
		r.wants(t, api.ExitStatus{Status: api.ExecFailed, Reason: tt.reason, ExitCode: tt.code})
		if !tt.exec.TTY && (!strings.Contains(r.err, tt.says) || !strings.HasSuffix(r.err, "\n")) || !strings.Contains(message, tt.says) {
			t.Errorf("%s: stderr %q and message %q do not say %q", name, r.err, message, tt.says)
		}
	}
}

func signal(t *testing.T, s *suite) {
	ctx := s.context(t)
	e := s.start(t, s.box(t), options.Exec{Cmd: sh("trap 'exit 7' USR1; echo ready; while :; do sleep 0.05; done")})
	r := s.watch(t, e, once(func(string) {
		if err := e.Signal(ctx, int(syscall.SIGUSR1)); err != nil {
			t.Error(err)
		}
	}))
	r.wants(t, exited(7))
	want(t, e.Signal(ctx, 15), fault.InvalidState)
	want(t, e.Cancel(ctx, 0), fault.InvalidState)
}

// interrupt tests that the children of a command are interrupted with it, and that
// those in a process group of their own are not.
func interrupt(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	e := s.start(t, box, options.Exec{Cmd: sh("trap 'echo interrupted' INT; sh -c 'trap \"echo child; exit\" INT; echo ready; while :; do sleep 0.05; done'; exit 7")})
	r := s.watch(t, e, once(func(string) {
		if _, err := box.Interrupt(ctx, e.ID()); err != nil {
			t.Error(err)
		}
	}))
	if r.wants(t, exited(7)); r.out != "ready\nchild\ninterrupted\n" {
		t.Errorf("got %q", r.out)
	}
	_, err := box.Interrupt(ctx, e.ID())
	want(t, err, fault.InvalidState)
}

// cancel tests that the whole process tree of the command ends, and nothing
// else.
func cancel(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	other := s.start(t, box, options.Exec{Cmd: sh("read line; exit 5"), Stdin: true})
	e := s.start(t, box, options.Exec{Cmd: sh("sleep 1000 & echo $!; wait")})
	var child string
	r := s.watch(t, e, once(func(line string) {
		child = line
		if err := e.Cancel(ctx, grace); err != nil {
			t.Error(err)
		}
	}))
	r.wants(t, ended(api.ExecCanceled, api.ReasonCanceled, 15))
	s.gone(t, box, child)
	write(t, other, "\n")
	s.finish(t, other).wants(t, exited(5))
}

// gone waits until a process has ended. That takes little time: its parent has
// ended already, and init reaps it.
func (s *suite) gone(t *testing.T, box *core.Box, pid string) {
	t.Helper()
	s.shell(t, box, "while kill -0 "+pid+" 2>/dev/null; do sleep 0.05; done").wants(t, exited(0))
}

func cancelWithGrace(t *testing.T, s *suite) {
	ctx := s.context(t)
	e := s.start(t, s.box(t), options.Exec{Cmd: sh("trap '' TERM; echo ready; while :; do sleep 0.05; done")})
	r := s.watch(t, e, once(func(string) {
		if err := e.Cancel(ctx, 50*time.Millisecond); err != nil {
			t.Error(err)
		}
	}))
	r.wants(t, ended(api.ExecCanceled, api.ReasonCanceled, 9))
}

func timedOut(t *testing.T, s *suite) {
	box := s.box(t)
	r := s.run(t, box, options.Exec{Cmd: sh("sleep 1000 & echo $!; wait"), Timeout: 200 * time.Millisecond})
	r.wants(t, ended(api.ExecTimedOut, api.ReasonTimedOut, 15))
	s.gone(t, box, strings.TrimSpace(r.out))
	s.run(t, box, options.Exec{Cmd: sh("exit 3"), Timeout: timeout}).wants(t, exited(3))
}

// background tests that a child that holds the pipes open lives on, and that
// nobody waits for it.
func background(t *testing.T, s *suite) {
	box := s.box(t)
	start := time.Now()
	r := s.shell(t, box, "sleep 1000 & echo $!")
	r.wants(t, exited(0))
	if took := time.Since(start); took > timeout/2 {
		t.Errorf("took %v", took)
	}
	s.shell(t, box, "kill -0 "+strings.TrimSpace(r.out)).wants(t, exited(0))
}

// released tests that a command lives on when nobody holds its exec any more.
func released(t *testing.T, s *suite) {
	box := s.box(t)
	file := "/tmp/released-" + box.ID()
	e := s.start(t, box, options.Exec{Cmd: sh("read line; cat >" + file), Stdin: true})
	write(t, e, "\nlater")
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	r := s.shell(t, box, "until grep -q later "+file+" 2>/dev/null; do sleep 0.05; done; rm "+file)
	r.wants(t, exited(0))
}

func manyExecs(t *testing.T, s *suite) {
	box := s.box(t)
	var wg sync.WaitGroup
	for i := range 50 {
		word := strings.Repeat("x", i)
		wg.Go(func() {
			r := s.shell(t, box, "echo "+word+"; exit 9")
			if r.wants(t, exited(9)); r.out != word+"\n" {
				t.Errorf("got %q, want %q", r.out, word)
			}
		})
	}
	wg.Wait()
}

func stopEndsExecs(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	e := s.start(t, box, options.Exec{Cmd: sh("echo ready; exec sleep 1000")})
	r := s.watch(t, e, once(func(string) {
		if _, err := box.Stop(ctx, grace); err != nil {
			t.Error(err)
		}
	}))
	r.wants(t, ended(api.ExecFailed, api.ReasonBoxStopped, 15))
}

func execNeedsRunning(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	if _, err := box.Stop(ctx, grace); err != nil {
		t.Fatal(err)
	}
	_, err := box.Exec(ctx, options.Exec{Cmd: []string{"true"}})
	want(t, err, fault.InvalidState)
}

func usage(t *testing.T, s *suite) {
	box := s.box(t)
	s.shell(t, box, "exit 1")
	s.run(t, box, options.Exec{Cmd: []string{"nosuchcommand"}})
	u, err := box.Usage(s.context(t))
	members.Equal(t, "usage", members.Of{
		"failure": {err, nil}, "commands": {u.Commands, 2}, "not started": {u.ExecErrors, 1},
		"CPU time below 0": {u.CPU < 0, false}, "memory below 0": {u.MemoryBytes < 0, false},
	})
}

// streams tests that usage counts the bytes that went into commands and came out
// of them: while they run and when they have ended, over a change of the reader.
func streams(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	counts := func(when string, stdin, output int64) {
		t.Helper()
		u, err := box.Usage(ctx)
		members.Equal(t, when, members.Of{"failure": {err, nil}, "stdin": {u.StdinBytes, stdin}, "output": {u.OutputBytes, output}})
	}
	s.shell(t, box, "head -c 70000 /dev/zero; printf 12345 >&2").wants(t, exited(0))
	counts("printed", 0, 70005)
	first := s.start(t, box, options.Exec{Cmd: []string{"cat"}, Stdin: true, KeepStdin: true})
	write(t, first, "one\n")
	enough := errors.New("all was read")
	if _, err := first.Stream(ctx, make([]byte, 4), func(bool, []byte) error { return enough }); !errors.Is(err, enough) {
		t.Fatal(err)
	}
	counts("while it runs", 4, 70009)
	if err := first.Detach(); err != nil {
		t.Fatal(err)
	}
	counts("without a reader", 4, 70009)
	second := must(box.Attach(ctx, first.ID()))(t)
	counts("with another reader", 4, 70009)
	write(t, second, "three\n")
	if err := second.CloseStdin(ctx); err != nil {
		t.Fatal(err)
	}
	s.finish(t, second).wants(t, exited(0))
	counts("ended", 10, 70015)
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	counts("left", 10, 70015)
}
