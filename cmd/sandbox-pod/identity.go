package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"sandbox/core/engine/guest"
	"sandbox/core/engine/link"
)

// texts are the names of what process 1 proves with who it is, and knows its clients by:
// in a directory, such as a mounted Secret of the type kubernetes.io/tls, and in the
// environment.
var texts = []struct{ file, variable string }{
	{"tls.crt", guest.Private + "CERTIFICATE"}, {"tls.key", guest.Private + "KEY"}, {"ca.crt", guest.Private + "CLIENT_CA"},
}

// identity returns the settings of the listener. A directory can be read by the box's
// root, to whom such a key must be worth nothing then: no other box may have it. What is
// in the environment of process 1 only that can read. With own there is no key to be
// had: process 1 makes it.
func identity(dir string, own bool) (*tls.Config, error) {
	var pem [3][]byte
	for i, name := range texts {
		pem[i] = []byte(os.Getenv(name.variable))
		if dir != "" {
			var err error
			if pem[i], err = os.ReadFile(filepath.Join(dir, name.file)); err != nil {
				return nil, err
			}
		}
	}
	pair, err := pairOf(own, pem[0], pem[1])
	if err != nil {
		return nil, fmt.Errorf("certificate and key of the box: %w", err)
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(pem[2]) {
		return nil, errors.New("the certificates of clients' authorities: there is none")
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
		DynamicRecordSizingDisabled: true, SessionTicketsDisabled: true, // see package link
	}, nil
}

// pairOf returns the key pair of these texts, or the process's own.
func pairOf(own bool, cert, key []byte) (tls.Certificate, error) {
	if own {
		return ownPair()
	}
	return tls.X509KeyPair(cert, key)
}

// ownPair makes a key pair, and tells its public key in the log of the container: who
// trusts the cluster's word for that log knows the box by it. The certificate says
// nothing more.
func ownPair() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	self := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, self, self, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, link.WriteKey(os.Stdout, &key.PublicKey)
}
