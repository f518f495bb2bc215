// Package shards starts servers of ClickHouse for tests. Each is a process of its
// own with libchdb in it that listens on loopback, and all of them together are one
// cluster, of which each is a shard.
package shards

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/test/programs"
)

//go:embed node.py
var program string

// Cluster is some servers. Its methods may be called from one goroutine at a time.
type Cluster struct {
	Nodes    []*Node
	dir      string
	reserved []int // descriptors of sockets that are bound to the servers' ports
}

// Node is one server.
type Node struct {
	http, tcp string // ports
	dir       string // of its files; its configuration is beside it
	cmd       *exec.Cmd
	said      bytes.Buffer // what it has printed; whole when it has ended
}

// Start starts n servers, which have no tables yet. Close ends them.
func Start(n int) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "shards")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir}
	for i := range n {
		web, webErr := c.port()
		tcp, tcpErr := c.port()
		if err := errors.Join(webErr, tcpErr); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.Nodes = append(c.Nodes, &Node{http: web, tcp: tcp, dir: filepath.Join(dir, fmt.Sprint(i))})
	}
	for _, node := range c.Nodes {
		if err := errors.Join(os.WriteFile(node.dir+".xml", []byte(c.config(node)), 0o600), node.Start()); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// config returns the configuration of a server, which names all shards.
func (c *Cluster) config(of *Node) string {
	var list strings.Builder
	for _, node := range c.Nodes {
		fmt.Fprintf(&list, "<shard><replica><host>127.0.0.1</host><port>%s</port></replica></shard>", node.tcp)
	}
	return fmt.Sprintf("<clickhouse><listen_host>127.0.0.1</listen_host><listen_reuse_port>1</listen_reuse_port><http_port>%s</http_port><tcp_port>%s</tcp_port>"+
		"<remote_servers><shards>%s</shards></remote_servers></clickhouse>", of.http, of.tcp, list.String())
}

// port reserves a port of this host until the cluster is closed, with a socket that is
// bound and does not listen. A server with listen_reuse_port can listen on it beside that
// socket (SO_REUSEPORT of socket(7)). Nobody else can, not even before the server has
// started or while it is killed, and the kernel chooses it for no other cluster.
func (c *Cluster) port() (string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("reserve a port: %w", err)
	}
	c.reserved = append(c.reserved, fd)
	shareErr := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	bindErr := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	name, nameErr := unix.Getsockname(fd)
	if err := errors.Join(shareErr, bindErr, nameErr); err != nil {
		return "", fmt.Errorf("reserve a port: %w", err)
	}
	return strconv.Itoa(name.(*unix.SockaddrInet4).Port), nil
}

// Define makes the tables of the log service, with rows that never end. Beside one
// server they are tables of its own. Of more servers each has a part of the rows, in
// tables with names that end in _local, and tables over all of them.
func (c *Cluster) Define() error {
	for _, node := range c.Nodes {
		if err := node.Tell("CREATE DATABASE otel"); err != nil {
			return err
		}
		for _, table := range []string{"otel_logs", "sandbox_metrics"} {
			if err := c.define(node, table); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Cluster) define(node *Node, table string) error {
	text, err := os.ReadFile(filepath.Join(programs.Tree(), "logs/embedded/chdb", table+".sql"))
	if err != nil {
		return err
	}
	made := strings.Replace(string(text), "TTL @TTL@\n", "", 1)
	if len(c.Nodes) == 1 {
		return node.Tell(made)
	}
	if err := node.Tell(strings.Replace(made, "otel."+table, "otel."+table+"_local", 1)); err != nil {
		return err
	}
	return node.Tell(fmt.Sprintf("CREATE TABLE otel.%[1]s AS otel.%[1]s_local ENGINE = Distributed(shards, otel, %[1]s_local, rand())", table))
}

// patient are settings that let servers wait for each other on a busy machine. By
// default one that does not greet within a second is taken for one that is away.
const patient = "?connect_timeout_with_failover_ms=30000&hedged_connection_timeout_ms=30000"

// DSN returns the DSN of all servers, in their order. Further settings can be appended
// to it with "&".
func (c *Cluster) DSN() string {
	var hosts []string
	for _, node := range c.Nodes {
		hosts = append(hosts, "127.0.0.1:"+node.http)
	}
	return "http://default@" + strings.Join(hosts, ",") + "/" + patient
}

// Close ends all servers and removes their files.
func (c *Cluster) Close() error {
	for _, node := range c.Nodes {
		node.Kill()
	}
	for _, fd := range c.reserved {
		_ = unix.Close(fd)
	}
	return os.RemoveAll(c.dir)
}

// startTime bounds how long a server may take until it answers.
const startTime = 5 * time.Minute

// Start starts a server that was killed, with the rows that it had, and waits until it
// answers.
func (n *Node) Start() error {
	n.said.Reset()
	n.cmd = exec.Command("python3", "-c", program, filepath.Join(programs.Dir(), "lib/libchdb.so"), n.dir+".xml", n.dir, n.http, n.tcp)
	n.cmd.Stdout, n.cmd.Stderr = &n.said, &n.said
	if err := n.cmd.Start(); err != nil {
		return err
	}
	var err error
	for end := time.Now().Add(startTime); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err = n.Tell("SELECT 1"); err == nil {
			return nil
		}
	}
	n.Kill()
	return fmt.Errorf("a server of ClickHouse does not answer: %w: %s", err, n.said.String())
}

// Revive starts a server again if it has ended by itself.
func (n *Node) Revive() error {
	if n.Tell("SELECT 1") == nil {
		return nil
	}
	n.Kill()
	return n.Start()
}

// Kill ends a server, which keeps its files.
func (n *Node) Kill() {
	if n.cmd != nil && n.cmd.ProcessState == nil {
		_, _ = n.cmd.Process.Kill(), n.cmd.Wait()
	}
}

// DSN returns the DSN of this server alone.
func (n *Node) DSN() string { return "http://default@127.0.0.1:" + n.http + "/" + patient }

// Tell has the server carry out a statement.
func (n *Node) Tell(statement string) error {
	_, err := n.Ask(statement)
	return err
}

// client leaves no connection behind.
var client = http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Ask returns the server's answer to a statement.
func (n *Node) Ask(statement string) (string, error) {
	res, err := client.Post("http://127.0.0.1:"+n.http+"/", "text/plain", strings.NewReader(statement))
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, text)
	}
	return strings.TrimSpace(string(text)), err
}
