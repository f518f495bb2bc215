package kubernetes

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
		near := a.config(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "box"}})
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

// TestVouch has pods whose inits have made their keys themselves: one is known by the
// certificate that the authority has made for it, and by no other.
func TestVouch(t *testing.T) {
	t.Parallel()
	authorities, keys := [2]*authority{}, [2]*ecdsa.PrivateKey{}
	for i := range authorities {
		secret, err := newAuthority()
		if err != nil {
			t.Fatal(err)
		}
		if authorities[i], err = readAuthority(secret.Data); err != nil {
			t.Fatal(err)
		}
		if keys[i], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	ours, theirs := authorities[0], authorities[1]
	vouched := func(a *authority, uid types.UID, key *ecdsa.PrivateKey) string {
		cert, err := a.vouch(uid, &key.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		return string(cert)
	}
	for name, tt := range map[string]struct {
		annotation string
		works      bool
	}{
		"its own":                {vouched(ours, "uid", keys[0]), true},
		"of another pod":         {vouched(ours, "other", keys[0]), false},
		"of another key":         {vouched(ours, "uid", keys[1]), false},
		"of another authority":   {vouched(theirs, "uid", keys[0]), false},
		"of the engines":         {string(encodeCert(ours.client.Certificate[0])), false},
		"of the authority":       {string(ours.pem), false},
		"damaged":                {"x", false},
		"damaged, in its frames": {string(encodeCert([]byte("x"))), false},
		"none":                   {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			self := template("uid")
			self.DNSNames = []string{"box", "uid"}
			der, err := x509.CreateCertificate(rand.Reader, self, self, &keys[0].PublicKey, keys[0])
			if err != nil {
				t.Fatal(err)
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "box", UID: "uid"}}
			if tt.annotation != "" {
				pod.Annotations = map[string]string{annotationCertificate: tt.annotation}
			}
			one, other := net.Pipe()
			defer one.Close()
			defer other.Close()
			go func() {
				_ = tls.Server(other, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: keys[0]}}}).HandshakeContext(t.Context())
				_, _ = io.Copy(io.Discard, other)
			}()
			if err := tls.Client(one, ours.config(pod)).HandshakeContext(t.Context()); (err == nil) != tt.works {
				t.Errorf("%v, want it to work: %v", err, tt.works)
			}
		})
	}
}
