package daemon

import (
	"crypto/tls"
	"net"
	"net/netip"
	"path/filepath"

	"sandbox/auth"
	"sandbox/core/fault"
	"sandbox/core/local"
)

// NoListen as Config.Listen means the Unix socket alone.
const NoListen = "none"

// Config is how a daemon shall be: the flags of `sandbox serve`.
type Config struct {
	// Home is the directory of all state; "" is the default of [local.Config].
	Home string
	// Beside is where this program lies: programs are looked for around it.
	Beside string
	// Listen is a TCP address, or [NoListen]. Port 0 is a free one.
	Listen string
	// Socket is the path of the Unix socket; "" is sandbox.sock in the home.
	Socket string

	Prefix    string   // see httpd.Config
	Hosted    bool     // see httpd.Config
	HostRoots []string // see httpd.Config
	Publish   string   // address that ports are published on
	TLSCert   string   // PEM files, both or none
	TLSKey    string
	// Environment is the one that observability permissions must be for.
	Environment string

	ClickHouseDSN      string // engine of the log queries; "" is the embedded one
	ClickHouseWriteDSN string // engine that logs are written to
	ChdbLib            string // path of libchdb, for the embedded engine
	LogOutput          bool   // also with a DSN: events and output of boxes are logs
	Logs               Logs   // the table [logs] of the configuration file

	// Aliases are short names of images, over those of the home.
	Aliases map[string]string
}

// settings is a Config that was found right.
type settings struct {
	Config
	publish netip.Addr
	tls     *tls.Config // nil without TLS
}

// check reads what is text in c. Errors: Config.
func (c Config) check() (settings, error) {
	s := settings{Config: c}
	var err error
	if s.Home, err = local.Home(c.Home); err != nil {
		return s, err
	}
	if s.Socket == "" {
		s.Socket = filepath.Join(s.Home, "sandbox.sock")
	}
	if s.Socket, err = filepath.Abs(s.Socket); err != nil {
		return s, fault.Wrap(fault.Config, err, "--socket")
	}
	if s.publish, err = netip.ParseAddr(c.Publish); err != nil {
		return s, fault.New(fault.Config, "--publish %q: want an IP address", c.Publish)
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil && c.Listen != NoListen {
		return s, fault.New(fault.Config, "--listen %q: want HOST:PORT or %s", c.Listen, NoListen)
	}
	if !auth.ValidEnvironment(c.Environment) {
		return s, fault.New(fault.Config, "--environment %q: want letters, digits, _, . or -", c.Environment)
	}
	if c.LogOutput && c.ClickHouseDSN != "" && c.ClickHouseWriteDSN == "" {
		return s, fault.New(fault.Config, "--log-output with --clickhouse-dsn needs --clickhouse-write-dsn, to write to")
	}
	s.tls, err = c.certificate()
	return s, err
}

func (c Config) certificate() (*tls.Config, error) {
	if c.TLSCert == "" && c.TLSKey == "" {
		return nil, nil
	}
	if c.TLSCert == "" || c.TLSKey == "" {
		return nil, fault.New(fault.Config, "--tls-cert and --tls-key go together: give both")
	}
	cert, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "read the TLS certificate %s", c.TLSCert)
	}
	// HTTP/1.1 alone: WebSockets have no other way.
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, nil
}
