package soak_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"sandbox/client"
	"sandbox/core/fault"
	"sandbox/test/programs"
)

// address is where the daemon listens, in a network of its own.
const address = "127.0.0.1:9090"

// server is the daemon, again and again.
type server struct {
	soak *soak
	cmd  *exec.Cmd
	end  chan struct{} // closed when the process has been waited for
}

// start starts the daemon and waits until it is ready. It may have limit
// descriptors; 0 leaves as many as there are.
func (d *server) start(limit int) error {
	program := filepath.Join(programs.Dir(), "sandbox")
	d.cmd = exec.Command(program, "serve")
	if limit > 0 {
		d.cmd = exec.Command("sh", "-c", fmt.Sprintf("ulimit -n %d; exec %s serve", limit, program))
	}
	d.cmd.Env = d.soak.env()
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.OpenFile(d.soak.daemonLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	d.cmd.Stderr = log
	if err := d.cmd.Start(); err != nil {
		return err
	}
	end, cmd := make(chan struct{}), d.cmd
	d.end = end
	go func() {
		_ = cmd.Wait()
		close(end)
	}()
	return d.ready()
}

// ready waits until the daemon answers, or has ended.
func (d *server) ready() error {
	for {
		select {
		case <-d.end:
			return fmt.Errorf("the daemon ended: %s", tail(d.soak.daemonLog(), ""))
		default:
		}
		if conn, err := net.Dial("tcp", address); err == nil && client.Listens(d.soak.ctx, d.soak.socket()) {
			return conn.Close()
		}
		if !d.soak.pause(nil) {
			return fmt.Errorf("the daemon does not get ready: %s", tail(d.soak.daemonLog(), ""))
		}
	}
}

// signal sends a signal that ends the daemon, and waits for the end.
func (d *server) signal(sig os.Signal) {
	_ = d.cmd.Process.Signal(sig) // one that has ended is waited for as well
	<-d.end
}

func (s *soak) env() []string {
	return append(os.Environ(), "SANDBOX_HOME="+s.home, "HOME="+s.dir)
}

func (s *soak) socket() string    { return filepath.Join(s.home, "sandbox.sock") }
func (s *soak) daemonLog() string { return filepath.Join(s.dir, "daemon.log") }
func (s *soak) shimLog() string   { return filepath.Join(s.home, "engine", "shim.log") }

// command runs the command line.
func (s *soak) command(args ...string) {
	cmd := exec.Command(filepath.Join(programs.Dir(), "sandbox"), args...)
	cmd.Env = s.env()
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %v: %s", args, err, out)
	}
}

// connect returns a client on the Unix socket, and one on TCP with a key.
func (s *soak) connect() []*client.Client {
	local, err := client.New(client.Options{URL: "unix://" + s.socket()})
	must(s.t, err)
	s.t.Cleanup(func() { local.Close() })
	key, err := local.CreateKey(s.ctx, client.NewKey{Name: "soak", Permissions: []string{"Boxes"}})
	must(s.t, err)
	tcp, err := client.New(client.Options{URL: "http://" + address, Credential: client.NewApiKeyCredential(key.Secret)})
	must(s.t, err)
	s.t.Cleanup(func() { tcp.Close() })
	return []*client.Client{local, tcp}
}

// raw sends requests to the daemon's socket as a program without our client does.
func (s *soak) raw() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", s.socket())
		},
	}}
}

// goroutines asks the daemon how many it has.
func (s *soak) goroutines() int {
	resp, err := s.raw().Get("http://box/metrics")
	must(s.t, err)
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "go_goroutines "); ok {
			n, err := strconv.Atoi(value)
			must(s.t, err)
			return n
		}
	}
	s.t.Fatal("the daemon tells no goroutines")
	return 0
}

// kindOf classifies a failure as its receiver does.
func kindOf(err error) fault.Kind { return fault.Of(err).Kind }

// tail returns the last lines of a log that name one of the things, or tell of
// trouble.
func tail(file, things string) string {
	const last, long = 8, 400
	text, _ := os.ReadFile(file) // a log that is not there says nothing
	var found []string
	for line := range strings.Lines(string(text)) {
		named := slices.ContainsFunc(strings.Fields(things), func(thing string) bool { return strings.Contains(line, thing) })
		if named || strings.Contains(line, "ERROR") || strings.Contains(line, "WARN") {
			found = append(found, strings.TrimSpace(line[:min(len(line), long)])+"\n")
		}
	}
	return strings.Join(found[max(0, len(found)-last):], "")
}

// kill ends a process as nothing can prevent.
func kill(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }
