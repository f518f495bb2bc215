package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"sandbox/core/fault"
	"sandbox/daemon"
)

// config reads flags and the file that they name.
func config(t *testing.T, text string, args ...string) (daemon.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "serve.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var c daemon.Config
	var name string
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	serveFlags(flags, &c, &name)
	if err := flags.Parse(append(args, "--config", file)); err != nil {
		t.Fatal(err)
	}
	return c, readConfig(name, flags, &c)
}

// TestServeConfig wants every flag in the file, and a flag given to come first.
func TestServeConfig(t *testing.T) {
	t.Parallel()
	c, err := config(t, `listen = "127.0.0.1:1"
socket = "/s"
socket-group = "g"
prefix = "p"
hosted = true
host-root = ["/a", "/b"]
publish = ["192.0.2.1", "192.0.2.2"]
tls-cert = "c"
tls-key = "k"
environment = "e"
clickhouse-dsn = "d"
clickhouse-write-dsn = "w"
chdb-lib = "l"
log-output = true
metrics-interval = "30s"
[aliases]
mine = "host/mine:1"
`, "--listen", "none", "--host-root", "/c")
	want := daemon.Config{
		Listen: "none", Socket: "/s", SocketGroup: "g", Prefix: "p", Hosted: true, HostRoots: []string{"/c"}, Publish: []string{"192.0.2.1", "192.0.2.2"}, TLSCert: "c", TLSKey: "k",
		Environment: "e", ClickHouseDSN: "d", ClickHouseWriteDSN: "w", ChdbLib: "l", LogOutput: true, MetricsInterval: 30 * time.Second, Aliases: map[string]string{"mine": "host/mine:1"},
	}
	if err != nil || fmt.Sprint(c) != fmt.Sprint(want) {
		t.Errorf("got %+v, %v, want %+v", c, err, want)
	}
}

func TestServeConfigRefuses(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"listne = 1": "listne", "config = 'x'": "config", "help = true": "help", "host-root = '/a'": "a list", "listen = ['x']": "one value",
		"hosted = 'maybe'": "hosted", "metrics-interval = 10": "metrics-interval", "aliases = 1": "aliases", "[aliases]\na = 1": "aliases", "listen = ": "serve.toml", "[listen]\na = 1": "listen",
	} {
		if _, err := config(t, text); !fault.Is(err, fault.Config) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, want config_error about %s", text, err, says)
		}
	}
	var c daemon.Config
	if err := readConfig("/no/such", pflag.NewFlagSet("", pflag.ContinueOnError), &c); !fault.Is(err, fault.Config) {
		t.Errorf("got %v", err)
	}
}
