package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/transfer"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/test/kubelet"
)

// This program, started anew, is process 1 of a pod, and what that starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == transfer.Argument {
		transfer.Main()
		return
	}
	kubelet.Main()
	role, given := map[string]func() error{"init": initOfPod, "forger": forge}[os.Getenv(roleVariable)]
	if !given {
		os.Exit(m.Run())
	}
	failed := make(chan error)
	go func() { failed <- role() }() // not on the main thread, as in Main
	if err := <-failed; err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// roleVariable says what this program is.
const roleVariable = Private + "ROLE"

// initOfPod serves the connections of the listener that it was started with.
func initOfPod() error {
	p, err := NewPod(podGrace, testDisk())
	if err != nil {
		return err
	}
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f, err := conn.(*net.UnixConn).File()
			if err != nil {
				return
			}
			fd, err := unix.Dup(int(f.Fd()))
			_, _ = f.Close(), conn.Close()
			if err == nil {
				_ = unix.SetNonblock(fd, true)
				go p.serve(wire.NewConn(fd, "peer"))
			}
		}
	}()
	fmt.Fprintln(os.Stderr, p.Wait())
	return nil
}

// forge sends init a signal that looks, but for its code, as if it came from outside.
func forge() error {
	info := [32]int32{0: int32(unix.SIGTERM), 2: -1} // si_signo, si_code SI_QUEUE; si_pid is 0
	_, _, errno := unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, 1, uintptr(unix.SIGTERM), uintptr(unsafe.Pointer(&info)))
	if errno != 0 {
		return errno
	}
	info[2] = 0 // SI_USER, which the kernel lets nobody claim
	if _, _, errno = unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, 1, uintptr(unix.SIGTERM), uintptr(unsafe.Pointer(&info))); errno != unix.EPERM {
		return fmt.Errorf("a forged signal: %w", errno)
	}
	return nil
}

const podGrace = 4 * time.Second

// testPod is a pod of the tests.
type testPod struct {
	*kubelet.Container
	t      *testing.T
	socket string
}

func startPod(t *testing.T, more ...string) *testPod {
	t.Helper()
	p := &testPod{t: t, socket: filepath.Join(t.TempDir(), "s")}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.socket})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	file, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	env := []string{roleVariable + "=init", "PATH=" + defaultPath, "FROM_IMAGE=yes", "KUBERNETES_PORT=1", "HOSTNAME=x"}
	p.Container = kubelet.Start(t, []string{"/proc/self/exe"}, append(env, more...), file)
	_, _ = file.Close(), l.Close()
	return p
}

// claimedPod returns a pod that has its settings.
func claimedPod(t *testing.T, more ...string) *testPod {
	t.Helper()
	p := startPod(t, more...)
	if f := p.ask(wire.TypeConfig, wire.Config{Env: map[string]string{"BOX": "b"}}); f.Type != wire.TypeReady {
		t.Fatalf("got frame %d: %s", f.Type, f.Body)
	}
	return p
}

func (p *testPod) dial() *wire.Conn {
	p.t.Helper()
	conn, err := net.Dial("unix", p.socket)
	if err != nil {
		p.t.Fatal(err)
	}
	f, err := conn.(*net.UnixConn).File()
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = conn.Close()
	c := wire.NewConn(fd, "init")
	p.t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask sends one request on a connection of its own and returns the answer.
func (p *testPod) ask(t wire.Type, body any) wire.Frame {
	p.t.Helper()
	c := p.send(t, body)
	defer c.Close()
	return receiveFrame(p.t, c)
}

func (p *testPod) send(t wire.Type, body any) *wire.Conn {
	p.t.Helper()
	c := p.dial()
	if err := c.Send(t, body); err != nil {
		p.t.Fatal(err)
	}
	return c
}

func receiveFrame(t *testing.T, c *wire.Conn) wire.Frame {
	t.Helper()
	f, err := c.Recv()
	if err != nil {
		t.Fatal("receive: ", err)
	}
	return f
}

// running is a command in a pod.
type running struct {
	t    *testing.T
	conn *wire.Conn
	is   wire.Exec
	out  *os.File // the terminal, of one that has one
	err  *os.File
	in   *os.File
}

func (p *testPod) run(r wire.Start) *running {
	p.t.Helper()
	e := &running{t: p.t, conn: p.send(wire.TypeStart, r)}
	f := receiveFrame(p.t, e.conn)
	if f.Type != wire.TypeStarted {
		p.t.Fatalf("start %v: frame %d: %s", r.Cmd, f.Type, f.Body)
	}
	if err := f.Decode(&e.is); err != nil {
		p.t.Fatal(err)
	}
	for i, to := range []**os.File{&e.out, &e.err, &e.in} {
		if i < len(f.FDs) {
			_ = unix.SetNonblock(f.FDs[i], true)
			*to = os.NewFile(uintptr(f.FDs[i]), "stream")
			p.t.Cleanup(func() { _ = (*to).Close() })
		}
	}
	return e
}

func (p *testPod) sh(script string) *running {
	p.t.Helper()
	return p.run(wire.Start{Cmd: []string{"/bin/sh", "-c", script}})
}

// line returns the next line of the output.
func (e *running) line() string {
	e.t.Helper()
	var line []byte
	for b := make([]byte, 1); len(line) == 0 || line[len(line)-1] != '\n'; line = append(line, b[0]) {
		if _, err := e.out.Read(b); err != nil {
			e.t.Fatalf("after %q: %v", line, err)
		}
	}
	return strings.TrimSpace(string(line))
}

func (e *running) rest() string {
	e.t.Helper()
	b, err := io.ReadAll(e.out)
	if err != nil && !errors.Is(err, unix.EIO) {
		e.t.Fatal(err)
	}
	return string(b)
}

// end returns how the command ended, and leaves.
func (e *running) end() api.ExitStatus {
	e.t.Helper()
	defer e.conn.Close()
	f := receiveFrame(e.t, e.conn)
	var s api.ExitStatus
	if err := f.Decode(&s); err != nil || f.Type != wire.TypeExited {
		e.t.Fatalf("frame %d: %s: %v", f.Type, f.Body, err)
	}
	return s
}

func (e *running) tell(t wire.Type, body any) {
	e.t.Helper()
	if err := e.conn.Send(t, body); err != nil {
		e.t.Fatal(err)
	}
}

func TestPodExec(t *testing.T) {
	t.Parallel()
	p := claimedPod(t)
	for _, c := range []struct {
		name  string
		start wire.Start
		out   string
		code  int
	}{
		{"output", wire.Start{Cmd: []string{"echo", "hi"}}, "hi\n", 0},
		{"exit code", wire.Start{Cmd: []string{"sh", "-c", "exit 3"}}, "", 3},
		{"not found", wire.Start{Cmd: []string{"nothing-like-this"}}, "", 127},
		{"the image's directory", wire.Start{Cmd: []string{"pwd"}}, "/usr\n", 0},
		{"environment", wire.Start{Cmd: []string{"env"}, Env: map[string]string{"EXEC": "e"}, User: "nobody"},
			"BOX=b EXEC=e FROM_IMAGE=yes HOME=/nonexistent PATH=" + defaultPath + " USER=nobody", 0},
		{"user", wire.Start{Cmd: []string{"id", "-u"}, User: "nobody"}, "65534\n", 0},
		{"no privileges", wire.Start{Cmd: []string{"grep", "-E", "^(NoNewPrivs|Seccomp):", "/proc/self/status"}}, "NoNewPrivs:\t1\nSeccomp:\t2\n", 0},
	} {
		e := p.run(c.start)
		out, end := e.rest(), e.end()
		if c.name == "environment" {
			lines := strings.Fields(out)
			slices.Sort(lines)
			out = strings.Join(lines, " ")
		}
		if out != c.out || end.ExitCode != c.code {
			t.Errorf("%s: %q and %d, want %q and %d", c.name, out, end.ExitCode, c.out, c.code)
		}
	}
}

// commands returns the command lines that begin so, of all of the host's processes but
// those that have ended.
func commands(t *testing.T, begin string) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		line, _ := os.ReadFile(file) // fails for one that ends meanwhile
		if text := strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " ")); strings.HasPrefix(text, begin) {
			found = append(found, text)
		}
	}
	slices.Sort(found)
	return found
}

// A command's whole tree ends with it, however it forks; that of another command does not.
func TestPodTree(t *testing.T) {
	t.Parallel()
	p := claimedPod(t)
	dir := t.TempDir()
	sleep := filepath.Join(dir, "sleep") // so that they are told from others on this host
	program, err := osexec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, sleep); err != nil {
		t.Fatal(err)
	}
	other := p.sh(sleep + " 1 " + "1000 & echo up; wait")
	other.line()
	tree := p.sh(fmt.Sprintf(`mkfifo %[2]s; (setsid sh -c '(%[1]s 2 1000 &); (setsid %[1]s 3 1000 &)'; echo >%[2]s) & read x <%[2]s; echo up; exec %[1]s 4 1000`, sleep, filepath.Join(dir, "up")))
	tree.line()
	for len(commands(t, sleep)) < 4 { // those in the background may not have been executed yet
		runtime.Gosched()
	}
	tree.tell(wire.TypeCancel, wire.Cancel{GraceMS: 10_000})
	if end := tree.end(); end.Status != api.ExecCanceled || end.Signal != int(unix.SIGTERM) {
		t.Errorf("%+v", end)
	}
	if left := commands(t, sleep); !slices.Equal(left, []string{sleep + " 1 1000"}) {
		t.Errorf("afterwards: %q", left)
	}
}

// A tree that forks all the time is ended too, also one that leaves its process group with
// each fork.
func TestPodOutrun(t *testing.T) {
	t.Parallel()
	for name, fork := range map[string]string{"in one group": "sh %[1]s &", "in many": "setsid sh %[1]s &"} {
		p := claimedPod(t)
		script := filepath.Join(t.TempDir(), "forks")
		if err := os.WriteFile(script, fmt.Appendf(nil, "trap '' TERM\n"+fork, script), 0o755); err != nil {
			t.Fatal(err)
		}
		e := p.sh("sh " + script + "; echo up; sleep 1000")
		e.line()
		e.tell(wire.TypeCancel, wire.Cancel{GraceMS: 1})
		if end := e.end(); end.Status != api.ExecCanceled {
			t.Errorf("%s: %+v", name, end)
		}
		if left := commands(t, "sh "+script); len(left) > 0 {
			t.Errorf("%s: afterwards: %q", name, left)
		}
	}
}

// A group is busy while a process of it is left, and no two groups have the same mark.
func TestMarks(t *testing.T) { // not parallel: what other tests start at the same time would be marked
	tree, err := newMarks()
	if err != nil {
		t.Fatal(err)
	}
	var before, after unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_RSS, &before); err != nil {
		t.Fatal(err)
	}
	a, first := marked(t, tree)
	b, second := marked(t, tree)
	if err := unix.Getrlimit(unix.RLIMIT_RSS, &after); err != nil || after != before {
		t.Errorf("the limit was %+v and is %+v: %v", before, after, err)
	}
	for name, g := range map[string]group{"a": a, "b": b} {
		if err := g.remove(); !errors.Is(err, unix.EBUSY) {
			t.Errorf("remove %s: %v", name, err)
		}
	}
	if err := errors.Join(a.kill(), a.remove()); err != nil { // although nobody has reaped it yet
		t.Error("end a: ", err)
	}
	if err := b.remove(); !errors.Is(err, unix.EBUSY) {
		t.Error("b went with a: ", err)
	}
	if err := errors.Join(b.kill(), b.remove()); err != nil {
		t.Error("end b: ", err)
	}
	_, _ = first.Wait(), second.Wait()
}

// marked starts a process in a group of its own.
func marked(t *testing.T, tree *marks) (group, *osexec.Cmd) {
	t.Helper()
	g, err := tree.make("")
	if err != nil {
		t.Fatal(err)
	}
	cmd := osexec.CommandContext(t.Context(), "sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = g.enter(nil)
	failed := cmd.Start()
	g.leave()
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	return g, cmd
}

func TestPodSettings(t *testing.T) {
	t.Parallel()
	p := startPod(t)
	refused := func(ty wire.Type, body any) {
		t.Helper()
		f := p.ask(ty, body)
		var e wire.Error
		if err := f.Decode(&e); err != nil || f.Type != wire.TypeError || e.Kind != fault.InvalidState {
			t.Errorf("%d is answered with %d: %s", ty, f.Type, f.Body)
		}
	}
	refused(wire.TypeStart, wire.Start{Cmd: []string{"true"}})
	refused(wire.TypeFiles, wire.Files{})
	refused(wire.TypeSupervise, wire.Supervise{Cmd: []string{"true"}})
	one := wire.Config{Env: map[string]string{"A": "b"}, WorkingDir: "/", User: "nobody"}
	for range 2 {
		if f := p.ask(wire.TypeConfig, one); f.Type != wire.TypeReady {
			t.Errorf("frame %d: %s", f.Type, f.Body)
		}
	}
	refused(wire.TypeConfig, wire.Config{})
	if out := p.sh(`echo $A $PWD $(id -un)`).rest(); out != "b / nobody\n" {
		t.Errorf("the settings don't show: %q", out)
	}
}

func TestPodSignals(t *testing.T) {
	t.Parallel()
	p := claimedPod(t)
	e := p.run(wire.Start{Cmd: []string{"sh", "-c", "trap 'echo got; exit 7' USR1; echo up; while :; do sleep 0.01; done"}, User: "nobody"})
	e.line()
	e.tell(wire.TypeSignal, wire.Signal{Signal: int(unix.SIGUSR1)})
	if out, end := e.rest(), e.end(); out != "got\n" || end.ExitCode != 7 {
		t.Errorf("%q, %+v", out, end)
	}
	e = p.run(wire.Start{Cmd: []string{"sleep", "1000"}, User: "nobody", TimeoutMS: 1})
	if end := e.end(); end.Status != api.ExecTimedOut {
		t.Errorf("%+v", end)
	}
}

func TestPodTerminal(t *testing.T) {
	t.Parallel()
	p := claimedPod(t)
	e := p.run(wire.Start{TTY: true, Cols: 70, Rows: 20, User: "nobody", Cmd: []string{"sh", "-c",
		"tty; stty size; read x; echo $x; stty size; trap 'exit 9' INT; echo up; while :; do sleep 0.01; done"}})
	if tty, size := e.line(), e.line(); !strings.HasPrefix(tty, "/dev/pts/") || size != "20 70" {
		t.Errorf("%q, %q", tty, size)
	}
	if err := unix.IoctlSetWinsize(int(e.out.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 5, Col: 6}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.out.WriteString("typed\n"); err != nil {
		t.Fatal(err)
	}
	if got := []string{e.line(), e.line(), e.line(), e.line()}; !slices.Equal(got, []string{"typed", "typed", "5 6", "up"}) {
		t.Errorf("%q", got)
	}
	if _, err := e.out.Write([]byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	if end := e.end(); end.ExitCode != 9 {
		t.Errorf("%+v", end)
	}
}

func TestPodStdin(t *testing.T) {
	t.Parallel()
	p := claimedPod(t)
	e := p.run(wire.Start{Cmd: []string{"cat"}, Stdin: true})
	if _, err := e.in.WriteString("through"); err != nil {
		t.Fatal(err)
	}
	_ = e.in.Close()
	if out, end := e.rest(), e.end(); out != "through" || end.ExitCode != 0 {
		t.Errorf("%q, %+v", out, end)
	}
}

// Nothing inside stops the box, whatever it sends to init; a signal from outside does.
func TestPodStopped(t *testing.T) {
	t.Parallel()
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGQUIT, unix.SIGWINCH} { // images name others than SIGTERM too
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			t.Parallel()
			p := claimedPod(t)
			for _, from := range []wire.Start{
				{Cmd: []string{"bash", "-c", "for s in TERM INT QUIT HUP KILL STOP WINCH ABRT SEGV 35; do kill -$s 1 || exit 1; done"}},
				{Cmd: []string{os.Args[0]}, Env: map[string]string{roleVariable: "forger"}},
			} {
				if end := p.run(from).end(); end.ExitCode != 0 {
					t.Errorf("signals from inside: %+v", end)
				}
			}
			polite, deaf := p.sh("trap 'echo bye; exit 4' TERM; echo up; while :; do sleep 0.01; done"), p.sh("trap '' TERM; echo up; while :; do sleep 0.01; done")
			polite.line()
			deaf.line()
			if err := p.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if out, end := polite.rest(), polite.end(); out != "bye\n" || end.Reason != api.ReasonBoxStopped || end.ExitCode != 4 {
				t.Errorf("%q, %+v", out, end)
			}
			if end := deaf.end(); end.Reason != api.ReasonBoxStopped || end.Signal != int(unix.SIGKILL) {
				t.Errorf("%+v", end)
			}
			if err := p.Wait(); err != nil || p.Output.String() != "stopped by a signal from outside\n" {
				t.Errorf("%v: %s", err, p.Output.String())
			}
		})
	}
}

func TestPodStopRequest(t *testing.T) {
	t.Parallel()
	p := claimedPod(t)
	e := p.sh("echo up; exec sleep 1000")
	e.line()
	if f := p.ask(wire.TypeStop, wire.Stop{GraceMS: 10_000}); f.Type != wire.TypeStopped {
		t.Errorf("frame %d: %s", f.Type, f.Body)
	}
	if end := e.end(); end.Reason != api.ReasonBoxStopped || end.Signal != int(unix.SIGTERM) {
		t.Errorf("%+v", end)
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
}

// What works on files in a box is this program too, wherever it lies.
func TestPodFiles(t *testing.T) {
	t.Parallel()
	p := claimedPod(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if m, _ := p.move(wire.Move{Path: path}, "bytes"); !m.Done {
		t.Errorf("%+v", m.Error)
	}
	if m, got := p.move(wire.Move{Path: path}, ""); !m.Done || got != "bytes" {
		t.Errorf("%q: %+v", got, m.Error)
	}
	if m, got := p.move(wire.Move{Operation: wire.List, Path: dir, Depth: 1, Limit: 9}, ""); !m.Done || !strings.Contains(got, "file") {
		t.Errorf("%q: %+v", got, m.Error)
	}
}

// move moves bytes into the pod, or out of it where there are none.
func (p *testPod) move(m wire.Move, data string) (moved wire.Moved, got string) {
	p.t.Helper()
	conn := p.send(wire.TypeFiles, wire.Files{In: data != ""})
	defer conn.Close()
	f := receiveFrame(p.t, conn)
	if f.Type != wire.TypeMoving || len(f.FDs) != 2 {
		p.t.Fatalf("frame %d: %s", f.Type, f.Body)
	}
	pipe, talk := os.NewFile(uintptr(f.FDs[0]), "pipe"), os.NewFile(uintptr(f.FDs[1]), "talk")
	defer talk.Close()
	to, from := json.NewEncoder(talk), json.NewDecoder(talk)
	err := to.Encode(m)
	if data != "" {
		_, failed := pipe.WriteString(data)
		err = errors.Join(err, failed, pipe.Close(), to.Encode(wire.Commit{Commit: true}))
	} else {
		bytes, failed := io.ReadAll(pipe)
		got, err = string(bytes), errors.Join(err, failed, pipe.Close())
	}
	for err == nil && !moved.Done && moved.Error == nil {
		err = from.Decode(&moved)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return moved, got
}
