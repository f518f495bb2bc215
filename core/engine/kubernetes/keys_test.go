package kubernetes

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"
)

// TestClocks has a server, the one that made the authority and a box connect whose clocks
// differ: by less than skew they do, by more they are told that a certificate is not valid.
func TestClocks(t *testing.T) {
	t.Parallel()
	secret, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	a, err := readAuthority(secret.Data)
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := a.issue("box", x509.ExtKeyUsageServerAuth)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	connect := func(server, box time.Duration) error {
		near := a.config("box")
		near.Time = func() time.Time { return time.Now().Add(server) }
		far := &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, ClientCAs: a.pool, ClientAuth: tls.RequireAndVerifyClientCert,
			Time: func() time.Time { return time.Now().Add(box) },
		}
		one, other := net.Pipe()
		defer one.Close()
		defer other.Close()
		refused := make(chan error, 1)
		go func() {
			err := tls.Server(other, far).HandshakeContext(t.Context())
			_ = other.Close()
			refused <- err
		}()
		err := tls.Client(one, near).HandshakeContext(t.Context())
		_ = one.Close()
		if theirs := <-refused; err == nil {
			err = theirs
		}
		return err
	}
	for _, tt := range []struct {
		server, box time.Duration
		works       bool
	}{
		{0, 0, true}, {time.Hour, 0, true}, {-time.Hour, 0, true}, {0, -time.Hour, true}, {-time.Hour, time.Hour, true},
		{skew + time.Hour, 0, true}, {-skew - time.Hour, 0, false}, {0, -skew - time.Hour, false},
	} {
		if err := connect(tt.server, tt.box); (err == nil) != tt.works {
			t.Errorf("a server %v and a box %v ahead of the maker: %v, want it to work: %v", tt.server, tt.box, err, tt.works)
		}
	}
}
