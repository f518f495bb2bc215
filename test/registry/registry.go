// Package registry starts Debian's docker-registry for tests and benchmarks, on
// loopback.
package registry

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// The user of a registry with Login.
const (
	User     = "user"
	Password = "secret"
	htpasswd = "user:$2y$04$flSY6OX6HpADwfX6qAD5BeUjUZpC6iOJUgJW/LHtLPl8zIQksCTZ6\n" // of these two
)

// Options says what a registry asks of its clients.
type Options struct {
	Login bool // User and Password
	TLS   bool // with a certificate that only Registry.TLS trusts
}

// Registry is one that runs.
type Registry struct {
	Host string      // host:port
	TLS  *tls.Config // nil without TLS

	auth authn.Authenticator
	cmd  *exec.Cmd
	log  io.Reader
}

// Start starts a registry that ends with the test, with its data. It fails the
// test if the package is missing.
func Start(t testing.TB, o Options) *Registry {
	t.Helper()
	r, err := Serve(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// Serve starts a registry that keeps its data and its settings in the directory
// dir. The caller closes it.
func Serve(dir string, o Options) (*Registry, error) {
	r := &Registry{auth: authn.Anonymous}
	config := fmt.Sprintf("version: 0.1\nlog: {level: info}\nstorage: {filesystem: {rootdirectory: %q}}\nhttp:\n  addr: 127.0.0.1:0\n", filepath.Join(dir, "data"))
	if o.TLS {
		var err error
		if r.TLS, err = certificate(dir); err != nil {
			return nil, err
		}
		config += fmt.Sprintf("  tls: {certificate: %q, key: %q}\n", filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	}
	if o.Login {
		file := filepath.Join(dir, "htpasswd")
		if err := write(file, []byte(htpasswd)); err != nil {
			return nil, err
		}
		config += fmt.Sprintf("auth: {htpasswd: {realm: test, path: %q}}\n", file)
		r.auth = &authn.Basic{Username: User, Password: Password}
	}
	file := filepath.Join(dir, "config.yml")
	if err := write(file, []byte(config)); err != nil {
		return nil, err
	}
	return r, r.run(file)
}

// run starts the program. It logs the address that it has chosen.
func (r *Registry) run(config string) error {
	r.cmd = exec.Command("docker-registry", "serve", config)
	log, err := r.cmd.StderrPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("needs Debian's docker-registry (apt-get install docker-registry): %w", err)
	}
	r.log = log
	lines := bufio.NewScanner(log)
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
		_, rest, found := strings.Cut(lines.Text(), "listening on ")
		if address, _, ok := strings.Cut(rest, `"`); found && ok {
			go func() { _, _ = io.Copy(io.Discard, log) }() // or it would block
			r.Host, _, _ = strings.Cut(address, ",")        // ", tls"
			return nil
		}
	}
	r.Close()
	return fmt.Errorf("docker-registry: %s", strings.Join(said, "\n"))
}

// Close ends the registry. Its data stays.
func (r *Registry) Close() {
	_ = r.cmd.Process.Kill()
	_, _ = io.Copy(io.Discard, r.log)
	_ = r.cmd.Wait()
}

// Push makes an image known there as repo, with its tag.
func (r *Registry) Push(t testing.TB, repo string, img v1.Image) {
	t.Helper()
	if err := r.Write(t.Context(), repo, img); err != nil {
		t.Fatal("push: ", err)
	}
}

// Write is Push outside of tests.
func (r *Registry) Write(ctx context.Context, repo string, img v1.Image) error {
	ref, err := name.ParseReference(r.Host + "/" + repo)
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: r.TLS.Clone()}
	defer transport.CloseIdleConnections()
	return remote.Write(ref, img, remote.WithAuth(r.auth), remote.WithTransport(transport), remote.WithContext(ctx))
}

// certificate writes a certificate and its key, and returns the pool that trusts it.
func certificate(dir string) (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	keyText := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	return &tls.Config{RootCAs: pool}, errors.Join(write(filepath.Join(dir, "cert.pem"), text), write(filepath.Join(dir, "key.pem"), keyText))
}

func write(name string, data []byte) error { return os.WriteFile(name, data, 0o600) }
