package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// server is a 'sandbox serve' that runs.
type server struct {
	cmd *exec.Cmd
	url string // over TCP
	log *strings.Builder
	end chan struct{} // closed once its log has ended
}

// serve starts a daemon on a free port and waits until it is ready.
func serve(env []string, flags ...string) (*server, error) {
	s := &server{log: &strings.Builder{}, end: make(chan struct{})}
	s.cmd = exec.Command("sandbox", append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)
	s.cmd.Env = env
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(io.TeeReader(stderr, s.log))
	for s.url == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			return nil, errors.Join(errors.New("the daemon did not start: "+s.log.String()), s.cmd.Wait())
		}
		if rest, ok := strings.CutPrefix(line, "sandbox: ready on "); ok {
			s.url, _, _ = strings.Cut(rest, " ")
		}
	}
	go func() { defer close(s.end); _, _ = io.Copy(io.Discard, lines) }()
	return s, nil
}

// stop ends the daemon, by sig, and returns its log.
func (s *server) stop(sig os.Signal) (string, error) {
	if s.cmd.ProcessState != nil {
		return s.log.String(), nil
	}
	_ = s.cmd.Process.Signal(sig)
	timer := time.AfterFunc(time.Minute, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	<-s.end
	err := s.cmd.Wait()
	return s.log.String(), err
}

// daemonKey is where a script's values have its daemon, a *server or nothing.
type daemonKey struct{}

// slot holds the daemon of a script.
type slot struct{ running *server }

// endWith ends the daemon of a script that it has by its end.
func (d *slot) endWith(t *testing.T, env *testscript.Env) {
	env.Values[daemonKey{}] = d
	env.Defer(func() {
		if d.running == nil {
			return
		}
		if log, err := d.running.stop(syscall.SIGTERM); err != nil {
			t.Errorf("the daemon: %v\n%s", err, log)
		}
	})
}

// daemonCommand is the script command that starts a daemon in the script's
// home and sets $URL, or ends it: 'daemon start FLAGS...', 'daemon stop',
// 'daemon kill'. Once it has ended its log is in the file daemon.log.
func daemonCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: daemon start FLAGS... | stop | kill")
	}
	d := ts.Value(daemonKey{}).(*slot)
	if args[0] == "start" {
		var env []string
		for _, name := range []string{"PATH", "HOME", "SANDBOX_HOME", "SANDBOX_HELPER_DIR"} {
			env = append(env, name+"="+ts.Getenv(name))
		}
		var err error
		d.running, err = serve(env, args[1:]...)
		ts.Check(err)
		ts.Setenv("URL", d.running.url)
		return
	}
	sig := syscall.SIGTERM
	if args[0] == "kill" {
		sig = syscall.SIGKILL
	}
	log, err := d.running.stop(sig)
	if sig == syscall.SIGTERM {
		ts.Check(err)
	}
	d.running = nil
	ts.Check(os.WriteFile(ts.MkAbs("daemon.log"), []byte(log), 0o600))
}

// certificate is the script command that makes cert.pem and key.pem, for a
// server on 127.0.0.1.
func certificate(ts *testscript.TestScript, _ bool, _ []string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	ts.Check(err)
	key, err := x509.MarshalPKCS8PrivateKey(private)
	ts.Check(err)
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "PRIVATE KEY", Bytes: key}} {
		ts.Check(os.WriteFile(ts.MkAbs(name), pem.EncodeToMemory(block), 0o600))
	}
}
