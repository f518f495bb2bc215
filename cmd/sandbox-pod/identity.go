package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sandbox/core/engine/guest"
)

// texts are the names of what process 1 proves with who it is, and knows its clients by:
// in a directory, such as a mounted Secret of the type kubernetes.io/tls, and in the
// environment.
var texts = []struct{ file, variable string }{
	{"tls.crt", guest.Private + "CERTIFICATE"}, {"tls.key", guest.Private + "KEY"}, {"ca.crt", guest.Private + "CLIENT_CA"},
}

// identity returns the settings of the listener. A directory can be read by the box's
// root, to whom such a key must be worth nothing then: no other box may have it. What is
// in the environment of process 1 only that can read.
func identity(dir string) (*tls.Config, error) {
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
	pair, err := tls.X509KeyPair(pem[0], pem[1])
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
