package attack_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
)

// Commands that can't be started are execs that have ended, as a shell has it.
func TestBadCommands(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	b.Sh(t, `cd /tmp; echo '#!/no/such/shell' >interpreter; echo 'no format' >format; : >empty; mkfifo fifo; chmod 755 *; echo >plain; ln -s loop loop`)
	for name, tt := range map[string]struct {
		exec options.Exec
		code int
	}{
		"missing":             {options.Exec{Cmd: []string{"/no/such"}}, 127},
		"bad interpreter":     {options.Exec{Cmd: []string{"/tmp/interpreter"}}, 127},
		"no format":           {options.Exec{Cmd: []string{"/tmp/format"}}, 126},
		"empty file":          {options.Exec{Cmd: []string{"/tmp/empty"}}, 126},
		"a pipe":              {options.Exec{Cmd: []string{"/tmp/fifo"}}, 126},
		"not executable":      {options.Exec{Cmd: []string{"/tmp/plain"}}, 126},
		"a directory":         {options.Exec{Cmd: []string{"/tmp"}}, 126},
		"a loop":              {options.Exec{Cmd: []string{"/tmp/loop"}}, 126},
		"a long name":         {options.Exec{Cmd: []string{strings.Repeat("x", 100_000)}}, 126},
		"no name":             {options.Exec{Cmd: []string{""}}, 126},
		"not allowed":         {options.Exec{Cmd: []string{"/root/x"}, User: "nobody"}, 127},
		"directory not there": {options.Exec{Cmd: []string{"true"}, WorkingDir: "/no/such"}, 126},
		"directory is a file": {options.Exec{Cmd: []string{"true"}, WorkingDir: "/etc/passwd"}, 126},
		"unknown user":        {options.Exec{Cmd: []string{"true"}, User: "stranger"}, 126},
		"unknown group":       {options.Exec{Cmd: []string{"true"}, User: "nobody:strangers"}, 126},
		"user out of range":   {options.Exec{Cmd: []string{"true"}, User: "70000"}, 126},
	} {
		// Past the checks of the runtime, as another program could.
		if out, s := run(t, b, tt.exec); s.ExitCode != tt.code || s.Status != api.ExecFailed || !strings.HasPrefix(out, "sandbox: ") {
			t.Errorf("%s: %.200q, %+v", name, out, s)
		}
	}
	if out, s := run(t, b, options.Exec{Cmd: []string{"env"}, Env: map[string]string{"A b\t": "\x01\u00ff=\n"}}); s.ExitCode != 0 || !strings.Contains(out, "A b\t=\x01\u00ff=\n") {
		t.Errorf("odd environment: %q, %+v", out, s)
	}
	_, err := b.Engine.Exec(t.Context(), b.ID, options.Exec{Cmd: []string{"echo", strings.Repeat("x", wire.MaxBody)}})
	if err == nil {
		t.Error("a command larger than a frame was taken")
	}
	b.Lives(t)
}

// run runs a command without the checks of the runtime.
func run(t *testing.T, b *boxes.Box, o options.Exec) (string, api.ExitStatus) {
	t.Helper()
	p, err := b.Engine.Exec(t.Context(), b.ID, o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	s := exit(t, p)
	var out bytes.Buffer
	for _, f := range []*os.File{p.Stdout, p.Stderr} {
		if _, err := io.Copy(&out, f); err != nil {
			t.Error(err)
		}
	}
	return out.String(), s
}

// exit waits for the end of a process.
func exit(t *testing.T, p *core.Process) api.ExitStatus {
	t.Helper()
	boxes.AwaitReadable(t, "the end of the command", p.ExitFD())
	s, err := p.Exit()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Output without end waits for its reader, and the command can be ended
// whether it reads or not.
func TestEndlessOutput(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	before := descriptors(t, b)
	rt, err := core.New(core.Config{Engine: b.Engine}).Get(t.Context(), b.ID)
	if err != nil {
		t.Fatal(err)
	}
	x, err := rt.Exec(t.Context(), options.Exec{Cmd: []string{"yes"}})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	enough := errors.New("enough")
	if _, err := x.Stream(t.Context(), make([]byte, 4096), func(bool, []byte) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
	if err := x.Cancel(t.Context(), time.Second); err != nil {
		t.Error(err)
	}
	s, err := x.Stream(t.Context(), make([]byte, 4096), func(bool, []byte) error { return nil })
	if err != nil || s.Status != api.ExecCanceled {
		t.Errorf("ended %+v, %v", s, err)
	}
	_ = x.Close()
	// A reader that goes away leaves the command, whose output is dropped.
	p, err := b.Engine.Exec(t.Context(), b.ID, options.Exec{Cmd: []string{"sh", "-c", "yes & yes"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Release(); err != nil {
		t.Error(err)
	}
	b.Lives(t)
	if out := b.Sh(t, "pidof yes | wc -w; killall yes"); out != "2\n" {
		t.Errorf("%q of 2 commands go on", out)
	}
	boxes.Await(t, "init's descriptors back", func() bool { return descriptors(t, b) <= before+4 })
}

// Input without end goes to a command that ends without reading it.
func TestEndlessInput(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	p, err := b.Engine.Exec(t.Context(), b.ID, options.Exec{Cmd: []string{"head", "-c", "1"}, Stdin: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for {
			if _, err := p.Stdin.Write(make([]byte, 64<<10)); err != nil {
				if !errors.Is(err, unix.EPIPE) {
					t.Error(err)
				}
				return
			}
		}
	})
	if s := exit(t, p); s.Status != api.ExecSucceeded {
		t.Errorf("ended %+v", s)
	}
}

// ask sends one request to a box's init and returns its answer.
func ask(t *testing.T, b *boxes.Box, kind wire.Type, body any) (*wire.Conn, wire.Frame) {
	t.Helper()
	conn := b.DialInit(t)
	if err := conn.Send(kind, body); err != nil {
		t.Fatal(err)
	}
	f, err := conn.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return conn, f
}

// The reader of a command dies with its connection. Another finds the same
// bytes and the same end; only one at a time has them.
func TestAttach(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	conn, f := ask(t, b, wire.TypeStart, wire.Start{Cmd: []string{"sh", "-c", "echo bytes; read x; echo more; exit 7"}, Stdin: true})
	var s wire.Exec
	if err := f.Decode(&s); err != nil || len(f.FDs) != 3 {
		t.Fatalf("got %+v", f)
	}
	second, refused := ask(t, b, wire.TypeAttach, wire.Attach{ID: s.ID})
	_ = second.Close()
	if code := wireCode(refused); code != "invalid_state" {
		t.Errorf("a second reader: %q", code)
	}
	f.CloseFDs() // the end of its input too
	_ = conn.Close()
	var again wire.Frame
	boxes.Await(t, "the first reader's end", func() bool {
		conn, again = ask(t, b, wire.TypeAttach, wire.Attach{ID: s.ID})
		if again.Type == wire.TypeStarted {
			return true
		}
		_ = conn.Close()
		return false
	})
	defer conn.Close()
	end, err := conn.Recv()
	var e api.ExitStatus
	if err != nil || end.Decode(&e) != nil || e.ExitCode != 7 {
		t.Errorf("ended %+v, %v", e, err)
	}
	out := os.NewFile(uintptr(again.FDs[0]), "stdout")
	defer out.Close()
	_ = unix.Close(again.FDs[1])
	if got := make([]byte, 100); true {
		n, err := out.Read(got)
		if string(got[:n]) != "bytes\nmore\n" {
			t.Errorf("read %q, %v", got[:n], err)
		}
	}
	third, unknown := ask(t, b, wire.TypeAttach, wire.Attach{ID: "exec_none"})
	_ = third.Close()
	if code := wireCode(unknown); code != "exec_not_found" {
		t.Errorf("an unknown exec: %q", code)
	}
}

func wireCode(f wire.Frame) string {
	var e wire.Error
	if f.Type != wire.TypeError || f.Decode(&e) != nil {
		return ""
	}
	return e.Kind.String()
}

// Init takes nonsense from no one, and lives.
func TestNonsenseToInit(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	for _, data := range [][]byte{
		[]byte(strings.Repeat("x", 1000)), header(1<<31, wire.TypeStart, 0), header(2<<20+1, wire.TypeStart, 0),
		append(header(2, wire.TypeStart, 0), "{}"...), append(header(4, wire.TypeStart, 0), "null"...),
		append(header(2, wire.TypeSignal, 0), "{}"...), header(0, 255, 4), header(10, wire.TypeStart, 0),
	} {
		conn := b.DialInit(t)
		raw(conn, data)
		_ = unix.Shutdown(conn.FD(), unix.SHUT_WR)
		if f, err := conn.Recv(); err == nil && f.Type != wire.TypeError {
			t.Errorf("%.20q was answered with %d", data, f.Type)
		}
		_ = conn.Close()
	}
	b.Lives(t)
}

// A caller that gives up at once leaves a box that works.
func TestExecGivenUp(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	for i := range 50 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*20*time.Microsecond)
		p, err := b.Engine.Exec(ctx, b.ID, options.Exec{Cmd: []string{"true"}})
		cancel()
		if err == nil {
			_ = p.Release()
		} else if !fault.Is(err, fault.Timeout) {
			t.Errorf("got %v", err)
		}
	}
	b.Lives(t)
}

// The rootfs of a box names other boxes' nowhere, and their ids differ.
func TestBoxesAreApart(t *testing.T) {
	t.Parallel()
	a := boxes.New(t)
	c := boxes.New(t)
	maps := [2]string{}
	for i, b := range []*boxes.Box{a, c} {
		maps[i] = b.Sh(t, "cat /proc/1/uid_map")
		if out := b.Sh(t, "cat /proc/mounts /proc/self/mountinfo; ls /sys/fs/cgroup"); strings.Contains(out, filepath.Dir(b.Home)) || strings.Contains(out, "memory.limit") {
			t.Errorf("the box sees of the host: %s", out)
		}
		if out := b.Sh(t, "ls /proc | grep -c '^[0-9]'; ls /sys/class/net"); !strings.HasSuffix(out, "\neth0\nlo\n") || len(out) > len("99\neth0\nlo\n") {
			t.Errorf("the box sees processes and networks: %q", out)
		}
	}
	if maps[0] == maps[1] {
		t.Errorf("both have the ids %q", maps[0])
	}
}
