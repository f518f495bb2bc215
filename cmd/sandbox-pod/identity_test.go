package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"

	"sandbox/core/engine/link"
	"sandbox/test/kubelet"
)

// TestOwnKey starts a box that has no key pair but what it makes: its log tells the public
// key before anything else, it serves with that, and those alone who have a certificate.
// A command can't write to the log.
func TestOwnKey(t *testing.T) {
	t.Parallel()
	authority, made := parties(t, "daemon")
	_, others := parties(t, "daemon")
	env := []string{"PATH=/usr/bin:/bin", texts[2].variable + "=" + string(authority)}
	p := &pod{t: t, Container: kubelet.Start(t, []string{program(t), "serve", "-own-key", "-listen", "127.0.0.1:0", "-grace", "2s"}, env)}
	line, err := p.Log.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	key, err := link.ReadKey(strings.NewReader(line))
	if err != nil {
		t.Fatalf("the first line is %q: %v", line, err)
	}
	line, err = p.Log.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(strings.TrimSpace(line), "listening on ")
	dial := func(ctx context.Context, as ...party) (net.Conn, error) {
		c := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true} //nolint:gosec // see below
		c.VerifyConnection = func(s tls.ConnectionState) error {
			if got, ok := s.PeerCertificates[0].PublicKey.(*ecdsa.PublicKey); !ok || !got.Equal(key) {
				return errors.New("another key than the log has told")
			}
			return nil
		}
		for _, one := range as {
			pair, err := tls.X509KeyPair(one.certificate, one.key)
			if err != nil {
				return nil, err
			}
			c.Certificates = append(c.Certificates, pair)
		}
		return (&tls.Dialer{Config: c}).DialContext(ctx, "tcp", address)
	}
	for who, as := range map[string][]party{"nobody": nil, "one of another authority": others} {
		conn, err := dial(t.Context(), as...)
		if err == nil {
			_, err = conn.Read(make([]byte, 1)) // the box verifies a client after its own handshake
			_ = conn.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "remote error: tls") {
			t.Errorf("%s: %v, want to be refused", who, err)
		}
	}
	p.host = link.NewHost(func(ctx context.Context) (net.Conn, error) { return dial(ctx, made...) })
	t.Cleanup(func() { _ = p.host.Close() })
	p.claim()
	if out, _ := p.finish(p.start("echo public key of mine > /proc/1/fd/1 || echo no")); out != "no\n" {
		t.Errorf("a command writes to the log: %q", out)
	}
}
