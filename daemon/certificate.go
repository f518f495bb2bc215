package daemon

import (
	"crypto/tls"
	"sync/atomic"

	"sandbox/core/fault"
)

// certificate is what TLS shows to clients. It is read again when the daemon is
// asked to (SIGHUP), so that a renewed one needs no restart.
type certificate struct {
	certFile, keyFile string
	current           atomic.Pointer[tls.Certificate]
}

// read reads the files; on failure the certificate in use stays. Errors: Config.
func (c *certificate) read() error {
	cert, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fault.Wrap(fault.Config, err, "read the TLS certificate %s", c.certFile)
	}
	c.current.Store(&cert)
	return nil
}

// config is TLS with whatever certificate was read last. Only HTTP/1.1 is
// offered: the WebSocket routes need its upgrade.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil },
		MinVersion:     tls.VersionTLS12, NextProtos: []string{"http/1.1"},
	}
}
