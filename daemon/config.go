package daemon

import (
	"cmp"
	"net"
	"net/netip"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sandbox/auth"
	"sandbox/core/engine/kubernetes"
	"sandbox/core/fault"
	"sandbox/core/local"
	"sandbox/daemon/address"
	"sandbox/daemon/systemd"
	"sandbox/metrics"
)

// NoListen is the Config.Listen of a daemon that listens on its Unix socket alone.
const NoListen = "none"

// DefaultMetricsInterval is the Config.MetricsInterval of `sandbox serve`.
const DefaultMetricsInterval = metrics.DefaultInterval

// Config holds the settings of a daemon: the flags of `sandbox serve`.
type Config struct {
	// Home is the directory of all state; "" means the default of [local.Config].
	Home string
	// Beside is the directory of this program; the other programs are looked
	// for around it.
	Beside string
	// Engine is where the boxes are, and Cluster which cluster; see [local.Config].
	Engine  string
	Cluster kubernetes.Config
	// Listen is a TCP address, or [NoListen]. With port 0 the kernel picks a
	// free port.
	Listen string
	// E2B is a TCP address that answers E2B's SDKs, as Listen is one; "" for none.
	E2B string
	// Socket is the path of the Unix socket; "" is sandbox.sock in the home.
	Socket string
	// SocketGroup is the group whose members may use Socket, too; "" for its owner alone.
	SocketGroup string
	// Inherited are sockets that the service manager has opened. They take the places
	// of Socket, Listen and E2B.
	Inherited systemd.Listeners

	Prefix    string   // see httpd.Config
	Hosted    bool     // see httpd.Config
	HostRoots []string // see httpd.Config
	Publish   []string // IP addresses that boxes' ports are published on; see httpd.Config
	TLSCert   string   // PEM file; with TLSKey, or neither
	TLSKey    string
	NoConsole bool // serve no web console
	// PortDomain is the domain whose hosts PORT-BOX lead to ports of boxes; "" for none.
	PortDomain string
	// Environment is the environment that this server belongs to: a key's
	// permissions for logs must be for the same.
	Environment string

	ClickHouseDSN      string // engine that answers log queries; "" is the embedded one
	ClickHouseWriteDSN string // engine that logs are written to
	LogsTable          string // a name that means the log table in statements; "" for none beside those that always do
	ChdbLib            string // path of libchdb, for the embedded engine
	LogOutput          bool   // store boxes' events, output and metrics also with a DSN
	Logs               Logs   // the table [logs] of the configuration file
	MCP                MCP    // the table [mcp] of it

	// MetricsInterval is how often boxes are measured, from [metrics.MinInterval] to
	// [metrics.MaxInterval]; 0 keeps no metrics over time.
	MetricsInterval time.Duration

	// Aliases are short names of images. They win over those of the home.
	Aliases map[string]string
}

// settings is a Config that has passed check.
type settings struct {
	Config
	publish []netip.Addr
	group   int          // of SocketGroup; -1 for none
	tls     *certificate // nil without TLS
}

// check fills in the defaults and parses the addresses and files that c names.
// Errors: Config.
func (c Config) check() (settings, error) {
	s := settings{Config: c}
	var err error
	if s.Home, err = local.Home(c.Home); err != nil {
		return s, err
	}
	if s.Socket, s.group, err = c.socket(s.Home); err != nil {
		return s, err
	}
	for _, address := range c.Publish {
		ip, err := netip.ParseAddr(address)
		if err != nil {
			return s, fault.New(fault.Config, "--publish %q: want an IP address", address)
		}
		s.publish = append(s.publish, ip.Unmap())
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil && c.Listen != NoListen {
		return s, fault.New(fault.Config, "--listen %q: want HOST:PORT or %s", c.Listen, NoListen)
	}
	if _, _, err := net.SplitHostPort(c.E2B); err != nil && c.E2B != "" {
		return s, fault.New(fault.Config, "--e2b %q: want HOST:PORT", c.E2B)
	}
	s.PortDomain = strings.ToLower(strings.Trim(c.PortDomain, "."))
	if c.PortDomain != "" && !isDomain(s.PortDomain) {
		return s, fault.New(fault.Config, "--port-domain %q: want a domain, as in ports.example.com", c.PortDomain)
	}
	if !auth.ValidEnvironment(c.Environment) {
		return s, fault.New(fault.Config, "--environment %q: want letters, digits, _, . or -", c.Environment)
	}
	if c.LogOutput && c.ClickHouseDSN != "" && c.ClickHouseWriteDSN == "" {
		return s, fault.New(fault.Config, "--log-output with --clickhouse-dsn needs --clickhouse-write-dsn, to write to")
	}
	if m := c.MetricsInterval; m != 0 && (m < metrics.MinInterval || m > metrics.MaxInterval) {
		return s, fault.New(fault.Config, "--metrics-interval %v: want %v to %v, or 0 for no metrics over time", m, metrics.MinInterval, metrics.MaxInterval)
	}
	s.tls, err = c.certificate()
	return s, err
}

// socket returns the path of the Unix socket, and the group that it is for, or -1.
// Errors: Config.
func (c Config) socket(home string) (path string, group int, err error) {
	if l := c.Inherited.Unix; l != nil {
		path = l.Addr().String()
		if c.SocketGroup != "" || c.Socket != "" && filepath.Clean(c.Socket) != path {
			return "", 0, fault.New(fault.Config, "the service manager has opened the socket %s: leave out --socket and --socket-group, "+
				"and set ListenStream= and SocketGroup= of the socket unit instead", path)
		}
		return path, -1, nil
	}
	if path, err = filepath.Abs(cmp.Or(c.Socket, filepath.Join(home, "sandbox.sock"))); err != nil {
		return "", 0, fault.Wrap(fault.Config, err, "--socket")
	}
	if c.SocketGroup == "" {
		return path, -1, nil
	}
	if _, in := strings.CutPrefix(path, filepath.Clean(home)+"/"); in {
		return "", 0, fault.New(fault.Config, "--socket-group %s: nobody but its owner may enter the home: name a socket elsewhere, as in --socket %s", c.SocketGroup, address.Shared)
	}
	g, err := user.LookupGroup(c.SocketGroup)
	if err == nil {
		group, err = strconv.Atoi(g.Gid)
	}
	return path, group, fault.Wrap(fault.Config, err, "--socket-group %s: make it with addgroup --system %[1]s, or name another", c.SocketGroup)
}

// isDomain reports whether a name in small letters is one of DNS, and no address.
func isDomain(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || strings.Trim(label, "-") != label {
			return false
		}
	}
	_, err := netip.ParseAddr(name)
	return err != nil && len(name) <= 200 // which leaves room for PORT-BOX
}

func (c Config) certificate() (*certificate, error) {
	if c.TLSCert == "" && c.TLSKey == "" {
		return nil, nil
	}
	if c.TLSCert == "" || c.TLSKey == "" {
		return nil, fault.New(fault.Config, "--tls-cert and --tls-key go together: give both")
	}
	cert := &certificate{certFile: c.TLSCert, keyFile: c.TLSKey}
	if err := cert.read(); err != nil {
		return nil, err
	}
	return cert, nil
}

// published returns the addresses on which the home's boxes publish ports: on a cluster
// all that a Service has, since none of them is this host's.
func (s settings) published(host *local.Host) []netip.Addr {
	if len(s.publish) == 0 && host.Shared != nil {
		return []netip.Addr{netip.IPv4Unspecified()}
	}
	return s.publish
}
