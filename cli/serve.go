package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"sandbox/core/fault"
	"sandbox/daemon"
	"sandbox/daemon/systemd"
)

func (a *app) serveCmd() *cobra.Command {
	var c daemon.Config
	var file string
	cmd := &cobra.Command{
		Use:   "serve [FLAGS]",
		Short: "Serve the boxes of this host over HTTP",
		Long: `Serve the boxes of this host over HTTP: on a TCP address, where every request
needs an API key, and on a Unix socket, where the socket file's mode decides who
may connect. Who may use the socket can do on this host what root can, by a box
that has / as a volume: give it to a group (--socket-group) of people with root's
password, or bound with --host-root the directories that boxes may share. That
holds for all clients but root and the user of the server.

The first start makes an administrator's key and stores it for the command
line. One line on stderr says when the server is ready. SIGTERM and Ctrl-C end
it; boxes keep running. SIGHUP makes it read its TLS certificate again; other
settings need a restart. Sockets that systemd has opened (LISTEN_FDS) take the
places of --listen, --e2b (of the name e2b) and --socket, and it is told when the
server is ready (NOTIFY_SOCKET). --config FILE is a TOML file in which every flag can
stand under its name (listen = "127.0.0.1:9090", host-root = ["/srv"]), short
names of images under [aliases], the budget of log queries under [logs.budget],
and the limits of tools for language models under [mcp]; a flag on the command line wins over the file.`,
		Args: cobra.NoArgs,
	}
	serveFlags(cmd.Flags(), &c, &file)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := readConfig(file, cmd.Flags(), &c); err != nil {
			return err
		}
		var err error
		if c.Inherited, err = systemd.Inherit(); err != nil {
			return err
		}
		manager, err := systemd.FindManager()
		if err != nil {
			return err
		}
		defer manager.Close()
		c.Beside = programDir()
		reload := make(chan os.Signal, 1)
		signal.Notify(reload, syscall.SIGHUP)
		defer signal.Stop(reload)
		return daemon.Run(cmd.Context(), c, daemon.Streams{Say: a.Err, Log: slog.New(logHandler(a.Err)), Reload: reload, Manager: manager})
	}
	return cmd
}

// Lasting tells whether a command line is a server's, which the end of the
// terminal (SIGHUP) does not end.
func Lasting(args []string) bool { return len(args) > 0 && args[0] == "serve" }

func serveFlags(fs *pflag.FlagSet, c *daemon.Config, file *string) {
	fs.StringVar(&c.Listen, "listen", "127.0.0.1:9090", "TCP `ADDRESS`; port 0 is a free one, \"none\" the socket alone")
	fs.StringVar(&c.Engine, "engine", "", "where boxes are: host, or kubernetes for pods of a cluster (default host, unless SANDBOX_HOME/config.toml has another)")
	fs.StringVar(&c.Cluster.Kubeconfig, "kubeconfig", "", "`FILE` that names the cluster (default KUBECONFIG, ~/.kube/config, or the service account of the pod)")
	fs.StringVar(&c.Cluster.Namespace, "namespace", "", "`NAME` of the namespace of the pods (default that of the kubeconfig or of the pod)")
	fs.StringVar(&c.Cluster.Program, "pod-image", "", "`IMAGE` that has sandbox-pod, for --engine kubernetes")
	fs.StringVar(&c.Cluster.Reach, "reach", "", "reach pods direct, or forward, through the API server (default direct inside the cluster)")
	fs.DurationVar(&c.Cluster.ScheduleTimeout, "schedule-timeout", 0, "how long a create waits for a node that has room (default 1m0s)")
	fs.StringVar(&c.Cluster.AgentSandbox, "agent-sandbox", "", "keep pods ready by kubernetes-sigs/agent-sandbox where the cluster has it (`MODE` auto), or never (off) (default auto)")
	fs.StringVar(&c.Cluster.PublishService, "publish-service", "", "publish ports of pods by a Service of the `TYPE` NodePort or LoadBalancer (default: refuse them)")
	fs.StringVar(&c.Cluster.DiskClass, "disk-class", "", "`NAME` of the storage class of the disks that boxes of a cluster keep while they are stopped (default none: they can't be stopped)")
	fs.StringVar(&c.E2B, "e2b", "", "TCP `ADDRESS` that answers E2B's SDKs; port 0 is a free one (default none)")
	fs.StringVar(&c.Socket, "socket", "", "`PATH` of the Unix socket (default sandbox.sock in SANDBOX_HOME)")
	fs.StringVar(&c.SocketGroup, "socket-group", "", "`GROUP` that may use the socket, too: as good as root unless --host-root bounds it (default none)")
	fs.StringVar(&c.Prefix, "prefix", "", "put the routes of boxes under /v1/`PREFIX`")
	fs.BoolVar(&c.Hosted, "hosted", false, "put all routes under /api")
	fs.StringArrayVar(&c.HostRoots, "host-root", nil, "let clients over TCP use host paths in `DIR`, and users of the socket but root no others; of the nodes, where boxes are on a cluster (repeatable)")
	fs.StringArrayVar(&c.Publish, "publish", nil, "publish ports of boxes on `ADDRESS`, and let clients over TCP name it (repeatable; the first is the default; 127.0.0.1 without any)")
	fs.StringVar(&c.TLSCert, "tls-cert", "", "PEM `FILE` of the certificate: TCP speaks TLS")
	fs.StringVar(&c.TLSKey, "tls-key", "", "PEM `FILE` of the certificate's key")
	fs.BoolVar(&c.NoConsole, "no-console", false, "serve no web console at /ui/")
	fs.StringVar(&c.PortDomain, "port-domain", "", "lead the hosts PORT-BOX.`DOMAIN` to ports of boxes (default none)")
	fs.StringVar(&c.Environment, "environment", "default", "`NAME` of the environment that keys for logs must be for")
	fs.StringVar(&c.ClickHouseDSN, "clickhouse-dsn", os.Getenv("SANDBOX_CLICKHOUSE_DSN"), "`DSN` of the ClickHouse that log queries go to (default SANDBOX_CLICKHOUSE_DSN, else the embedded engine)")
	fs.StringVar(&c.ClickHouseWriteDSN, "clickhouse-write-dsn", "", "`DSN` of the ClickHouse that logs are written to")
	fs.StringVar(&c.LogsTable, "logs-table", "", "`NAME`, TABLE or DATABASE.TABLE, that means otel.otel_logs in statements, too")
	fs.StringVar(&c.ChdbLib, "chdb-lib", os.Getenv("SANDBOX_CHDB_LIB"), "`PATH` of libchdb, the embedded engine (default SANDBOX_CHDB_LIB)")
	fs.BoolVar(&c.LogOutput, "log-output", false, "with --clickhouse-dsn too, write events, output and metrics of boxes there")
	fs.DurationVar(&c.MetricsInterval, "metrics-interval", daemon.DefaultMetricsInterval, "measure boxes every `DURATION`, from 1s to 1h, and keep the metrics; 0 keeps none")
	fs.StringVar(file, "config", "", "TOML `FILE` with these flags, and aliases")
	for _, name := range []string{"clickhouse-dsn", "chdb-lib"} { // --help must not show a password from the environment
		fs.Lookup(name).DefValue = ""
	}
}

// logHandler returns a handler that writes text to a terminal, and JSON otherwise.
func logHandler(w io.Writer) slog.Handler {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return slog.NewTextHandler(w, nil)
	}
	return slog.NewJSONHandler(w, nil)
}

// readConfig sets the flags that the file has and the command line has not.
// Errors: Config.
func readConfig(file string, flags *pflag.FlagSet, c *daemon.Config) error {
	if file == "" {
		return nil
	}
	var settings map[string]any
	if _, err := toml.DecodeFile(file, &settings); err != nil {
		return fault.Wrap(fault.Config, err, "read --config %s", file)
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		var err error
		switch name {
		case "aliases":
			c.Aliases, err = aliasTable(settings[name])
		case "logs":
			err = c.Logs.Read(settings[name])
		case "mcp":
			err = c.MCP.Read(settings[name])
		default:
			err = setFlag(flags, name, settings[name])
		}
		if err != nil {
			return fault.Wrap(fault.Config, err, "--config %s: %s", file, name)
		}
	}
	return nil
}

func aliasTable(v any) (map[string]string, error) {
	table, ok := v.(map[string]any)
	aliases := map[string]string{}
	for alias, ref := range table {
		aliases[alias], ok = ref.(string)
		if !ok {
			break
		}
	}
	if !ok {
		return nil, errors.New("must be a table of names and references")
	}
	return aliases, nil
}

func form(repeatable bool) string {
	if repeatable {
		return "a list"
	}
	return "one value"
}

// setFlag sets a flag to the file's value, unless it was given on the command
// line.
func setFlag(flags *pflag.FlagSet, name string, v any) error {
	flag := flags.Lookup(name)
	if flag == nil || name == "config" || name == "help" {
		return errors.New("there is no such setting")
	}
	list, repeatable := flag.Value.(pflag.SliceValue)
	items, isList := v.([]any)
	_, isTable := v.(map[string]any)
	switch {
	case repeatable != isList || isTable:
		return fmt.Errorf("want %s", form(repeatable))
	case flag.Changed:
		return nil
	case !repeatable:
		return flag.Value.Set(fmt.Sprint(v))
	}
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = fmt.Sprint(item)
	}
	return list.Replace(texts)
}
