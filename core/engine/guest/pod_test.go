package guest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/transfer"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// This program, started anew, is process 1 of a pod, and what that starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == transfer.Argument {
		transfer.Main()
		return
	}
	stage, inPod := map[string]func() error{"kubelet": kubelet, "init": initOfPod}[os.Getenv(stageVariable)]
	if !inPod {
		os.Exit(m.Run())
	}
	failed := make(chan error)
	go func() { failed <- stage() }() // not on the main thread, as in Main
	if err := <-failed; err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const stageVariable = Private + "STAGE"

// kubelet does what the kubelet and its runtime do before they start process 1.
func kubelet() error {
	runtime.LockOSThread()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	for _, m := range [][3]string{{"proc", "/proc", ""}, {"devpts", "/dev/pts", "newinstance,ptmxmode=0666,mode=0620,gid=5"}} {
		if err := unix.Mount(m[0], m[1], m[0], unix.MS_NOSUID|unix.MS_NOEXEC, m[2]); err != nil {
			return err
		}
	}
	if err := confinePod(); err != nil {
		return err
	}
	if err := os.Setenv(stageVariable, "init"); err != nil {
		return err
	}
	return syscall.Exec("/proc/self/exe", os.Args, os.Environ())
}

// podCapabilities are those that the container of a pod is given.
const podCapabilities = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID |
	1<<unix.CAP_KILL | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_NET_BIND_SERVICE | 1<<unix.CAP_SYS_CHROOT

func confinePod() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if podCapabilities&(1<<c) == 0 {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
				return err
			}
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: podCapabilities, Permitted: podCapabilities}}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// initOfPod serves the connections of the listener that it was started with.
func initOfPod() error {
	p, err := NewPod(podGrace)
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
				go p.g.handle(wire.NewConn(fd, "peer"))
			}
		}
	}()
	fmt.Fprintln(os.Stderr, p.Wait())
	return nil
}

const podGrace = 2 * time.Second

// testPod is a pod of the tests.
type testPod struct {
	t      *testing.T
	cmd    *osexec.Cmd
	socket string
	stderr bytes.Buffer
}

func startPod(t *testing.T) *testPod {
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
	p.cmd = osexec.CommandContext(context.Background(), "/proc/self/exe")
	p.cmd.ExtraFiles, p.cmd.Stderr, p.cmd.Dir = []*os.File{file}, &p.stderr, "/usr"
	p.cmd.Env = []string{stageVariable + "=kubelet", "PATH=" + defaultPath, "FROM_IMAGE=yes", "KUBERNETES_PORT=1", "HOSTNAME=x"}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS, Setsid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = file.Close(), l.Close()
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
		if t.Failed() {
			t.Logf("init: %s", p.stderr.String())
		}
	})
	return p
}

// claimed returns a pod that has its settings.
func claimedPod(t *testing.T) *testPod {
	t.Helper()
	p := startPod(t)
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
	return receiveFrame(p.t, p.send(t, body))
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

func (p *testPod) start(r wire.Start) *running {
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
	return p.start(wire.Start{Cmd: []string{"/bin/sh", "-c", script}})
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

func (e *running) end() api.ExitStatus {
	e.t.Helper()
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
		e := p.start(c.start)
		out, end := e.rest(), e.end()
		if c.name == "environment" {
			out = sorted(out)
		}
		if out != c.out || end.ExitCode != c.code {
			t.Errorf("%s: %q and %d, want %q and %d", c.name, out, end.ExitCode, c.out, c.code)
		}
	}
}

var _ = json.Marshal
var _ = fault.Engine

func sorted(lines string) string {
	l := strings.Fields(lines)
	for i := range l {
		for j := i + 1; j < len(l); j++ {
			if l[j] < l[i] {
				l[i], l[j] = l[j], l[i]
			}
		}
	}
	return strings.Join(l, " ")
}
