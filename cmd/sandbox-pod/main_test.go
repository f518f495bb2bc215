package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/guest"
	"sandbox/core/engine/link"
	"sandbox/core/engine/wire"
	"sandbox/test/kubelet"
)

func TestMain(m *testing.M) {
	kubelet.Main()
	os.Exit(m.Run())
}

// program is the one that the build has made.
func program(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SANDBOX_HELPER_DIR")
	if dir == "" {
		dir = "../../build"
	}
	path, err := filepath.Abs(filepath.Join(dir, "sandbox-pod"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("make build: %v", err)
	}
	return path
}

// party is one that has a certificate.
type party struct{ certificate, key []byte }

// parties makes an authority, and a certificate of it for each name.
func parties(t *testing.T, names ...string) (authority []byte, made []party) {
	t.Helper()
	root := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(c *x509.Certificate, key *ecdsa.PrivateKey) []byte {
		der, err := x509.CreateCertificate(rand.Reader, c, root, &key.PublicKey, rootKey)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	for i, name := range names {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{
			SerialNumber: big.NewInt(int64(2 + i)), DNSNames: []string{name}, NotAfter: root.NotAfter,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, party{issue(c, key), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})})
	}
	return issue(root, rootKey), made
}

// pod is a running sandbox-pod.
type pod struct {
	*kubelet.Container
	t       *testing.T
	address string
	host    *link.Host
}

// startPod starts a box, whose identity comes from its environment.
func startPod(t *testing.T) *pod {
	t.Helper()
	authority, made := parties(t, "box", "daemon")
	env := []string{"PATH=/usr/bin:/bin"}
	for i, text := range [][]byte{made[0].certificate, made[0].key, authority} {
		env = append(env, texts[i].variable+"="+string(text))
	}
	p := &pod{t: t, Container: kubelet.Start(t, []string{program(t), "serve", "-listen", "127.0.0.1:0", "-grace", "2s"}, env)}
	said, err := p.Log.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	p.address = strings.TrimPrefix(strings.TrimSpace(said), "listening on ")
	pair, err := tls.X509KeyPair(made[1].certificate, made[1].key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	dialer := &tls.Dialer{Config: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, ServerName: "box", MinVersion: tls.VersionTLS13}}
	p.host = link.NewHost(func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", p.address) })
	t.Cleanup(func() { _ = p.host.Close() })
	return p
}

// ask sends a request on a connection of its own and returns the answer.
func (p *pod) ask(ty wire.Type, body any) (*wire.Conn, wire.Frame) {
	p.t.Helper()
	c, err := p.host.Connect(p.t.Context(), true)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Close() })
	if err := c.Send(ty, body); err != nil {
		p.t.Fatal(err)
	}
	f, err := c.Recv()
	if err != nil {
		p.t.Fatal(err)
	}
	return c, f
}

func (p *pod) claim() {
	p.t.Helper()
	c, f := p.ask(wire.TypeConfig, wire.Config{})
	if f.Type != wire.TypeReady {
		p.t.Fatalf("frame %d: %s", f.Type, f.Body)
	}
	_ = c.Close()
}

// start starts a command and returns its connection and its stdout.
func (p *pod) start(script string) (*wire.Conn, *os.File) {
	p.t.Helper()
	c, f := p.ask(wire.TypeStart, wire.Start{Cmd: []string{"/bin/sh", "-c", script}})
	if f.Type != wire.TypeStarted {
		p.t.Fatalf("frame %d: %s", f.Type, f.Body)
	}
	_ = unix.SetNonblock(f.FDs[0], true)
	out := os.NewFile(uintptr(f.FDs[0]), "stdout")
	_ = unix.Close(f.FDs[1])
	p.t.Cleanup(func() { _ = out.Close() })
	return c, out
}

// finish returns what a command printed, and how it ended.
func (p *pod) finish(c *wire.Conn, out *os.File) (string, api.ExitStatus) {
	p.t.Helper()
	text, err := io.ReadAll(out)
	if err != nil {
		p.t.Fatal(err)
	}
	f, err := c.Recv()
	var end api.ExitStatus
	if err == nil {
		err = f.Decode(&end)
	}
	if err != nil || f.Type != wire.TypeExited {
		p.t.Fatalf("frame %d: %v", f.Type, err)
	}
	_ = c.Close()
	return string(text), end
}

func TestExec(t *testing.T) {
	t.Parallel()
	p := startPod(t)
	p.claim()
	if out, end := p.finish(p.start("echo $0 $PATH; exit 5")); out != "/bin/sh /usr/bin:/bin\n" || end.ExitCode != 5 {
		t.Errorf("%q, %+v", out, end)
	}
	// The key is nowhere in the box.
	if out, _ := p.finish(p.start("env; cat /proc/1/environ /proc/self/environ")); strings.Contains(out, guest.Private) || !strings.Contains(out, "PATH=") {
		t.Errorf("the box has the key: %q", out)
	}
}

// The kubelet's signal ends the box: what its commands said last arrives, and process 1
// says why it ended.
func TestStopped(t *testing.T) {
	t.Parallel()
	p := startPod(t)
	p.claim()
	c, out := p.start("trap 'echo bye; exit 4' TERM; echo up; while :; do sleep 0.01; done")
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	if err := p.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if text, end := p.finish(c, out); text != "bye\n" || end.ExitCode != 4 || end.Reason != api.ReasonBoxStopped {
		t.Errorf("%q, %+v", text, end)
	}
	if err := p.Wait(); err != nil || p.Output.String() != "stopped by a signal from outside\n" {
		t.Errorf("%v: %q", err, p.Output.String())
	}
}

// Nobody without a certificate of the authority is answered.
func TestStrangers(t *testing.T) {
	t.Parallel()
	p := startPod(t)
	p.claim()
	_, other := parties(t, "daemon")
	pair, err := tls.X509KeyPair(other[0].certificate, other[0].key)
	if err != nil {
		t.Fatal(err)
	}
	for name, with := range map[string][]tls.Certificate{"none": nil, "of another authority": {pair}} {
		d := &tls.Dialer{Config: &tls.Config{Certificates: with, InsecureSkipVerify: true}} //nolint:gosec // the stranger does not care
		c, err := d.DialContext(t.Context(), "tcp", p.address)
		if err == nil {
			_, err = c.Read(make([]byte, 1)) // TLS 1.3 tells a client then
			_ = c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "tls:") {
			t.Errorf("a certificate %s: %v", name, err)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"usage: ": {"what"}, "certificate and key": {"serve"}, "flag provided but not defined": {"serve", "-x"}, "no such file": {"serve", "-tls", "/nowhere"},
	} {
		c := kubelet.Start(t, append([]string{program(t)}, args...), nil)
		if err := c.Wait(); c.ProcessState.ExitCode() != 1 || !strings.Contains(c.Output.String(), want) {
			t.Errorf("%q: %v: %s", args, err, c.Output.String())
		}
	}
}

// TestPaths looks for paths as the init container of a box does.
func TestPaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(dir+"/in", 0o700), os.Symlink("/etc", dir+"/out"), os.WriteFile(dir+"/f", nil, 0o600), unix.Mkfifo(dir+"/pipe", 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/in": "", "/f": "", "": "", "/none": wire.PathUnusable + "b " + dir + "/none names no file", "/pipe": wire.PathUnusable, "/out": wire.PathOutside + "b " + dir + "/out leads out",
	} {
		c := kubelet.Start(t, []string{program(t), "paths", "a", dir, dir + "/in", "b", dir, dir + path}, nil)
		if err := c.Wait(); (c.ProcessState.ExitCode() == 0) != (want == "") || !strings.Contains(c.Output.String(), want) {
			t.Errorf("%s: %v: %s", path, err, c.Output.String())
		}
	}
}

func TestInstall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 { // again, over the first
		if out, err := exec.CommandContext(t.Context(), program(t), "install", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "sandbox-pod"), "version").Output()
	if err != nil || strings.TrimSpace(string(out)) != core.Version {
		t.Errorf("%q: %v", out, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v: %v", left, err)
	}
}
