// Package registry starts Debian's docker-registry for tests, on loopback.
package registry

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
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
}

// Start starts a registry that ends with the test, with its data. It fails the
// test if the package is missing.
func Start(t testing.TB, o Options) *Registry {
	t.Helper()
	dir := t.TempDir()
	r := &Registry{auth: authn.Anonymous}
	config := fmt.Sprintf("version: 0.1\nlog: {level: info}\nstorage: {filesystem: {rootdirectory: %q}}\nhttp:\n  addr: 127.0.0.1:0\n", filepath.Join(dir, "data"))
	if o.TLS {
		r.TLS = certificate(t, dir)
		config += fmt.Sprintf("  tls: {certificate: %q, key: %q}\n", filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	}
	if o.Login {
		file := filepath.Join(dir, "htpasswd")
		write(t, file, []byte(htpasswd))
		config += fmt.Sprintf("auth: {htpasswd: {realm: test, path: %q}}\n", file)
		r.auth = &authn.Basic{Username: User, Password: Password}
	}
	write(t, filepath.Join(dir, "config.yml"), []byte(config))
	r.Host = run(t, filepath.Join(dir, "config.yml"))
	return r
}

// run gives the address that the registry has chosen: it logs it.
func run(t testing.TB, config string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "docker-registry", "serve", config)
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal("needs Debian's docker-registry (apt-get install docker-registry): ", err)
	}
	t.Cleanup(func() { // t's context has ended
		_, _ = io.Copy(io.Discard, log)
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(log)
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
		_, rest, found := strings.Cut(lines.Text(), "listening on ")
		if address, _, ok := strings.Cut(rest, `"`); found && ok {
			go func() { _, _ = io.Copy(io.Discard, log) }() // or it would block
			address, _, _ = strings.Cut(address, ",")       // ", tls"
			return address
		}
	}
	t.Fatal("docker-registry: ", strings.Join(said, "\n"))
	return ""
}

// Push makes an image known there as repo, with its tag.
func (r *Registry) Push(t testing.TB, repo string, img v1.Image) {
	t.Helper()
	ref, err := name.ParseReference(r.Host + "/" + repo)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: r.TLS.Clone()}
	defer transport.CloseIdleConnections()
	if err := remote.Write(ref, img, remote.WithAuth(r.auth), remote.WithTransport(transport), remote.WithContext(t.Context())); err != nil {
		t.Fatal("push: ", err)
	}
}

// certificate writes a certificate and its key, and gives what trusts it.
func certificate(t testing.TB, dir string) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool.AppendCertsFromPEM(text)
	write(t, filepath.Join(dir, "cert.pem"), text)
	write(t, filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
	return &tls.Config{RootCAs: pool}
}

func write(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
