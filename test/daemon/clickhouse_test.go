package daemon_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandbox/test/boxes"
	"sandbox/test/programs"
)

// clickHouse starts a server of ClickHouse with the tables that docs/clickhouse.md tells
// to make, and returns its DSN. It ends with the test.
func clickHouse(t *testing.T) string {
	t.Helper()
	port, dir := freePort(t), t.TempDir()
	config := filepath.Join(dir, "config.xml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "<clickhouse><listen_host>127.0.0.1</listen_host><http_port>%s</http_port></clickhouse>", port), 0o600))
	cmd := exec.Command("python3", "testdata/clickhouse.py", filepath.Join(programs.Dir(), "lib/libchdb.so"), config, filepath.Join(dir, "data"), port)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	must(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	dsn := "http://default@127.0.0.1:" + port + "/"
	boxes.Await(t, "a server of ClickHouse", func() bool { return tell(dsn, "SELECT 1") == nil })
	must(t, tell(dsn, "CREATE DATABASE otel"))
	for table, at := range map[string]string{"otel_logs": "TimestampTime", "sandbox_metrics": "toDateTime(at)"} {
		text, err := os.ReadFile("../../logs/embedded/chdb/" + table + ".sql")
		must(t, err)
		must(t, tell(dsn, strings.ReplaceAll(string(text), "@TTL@", at+" + INTERVAL 7 DAY")))
	}
	return dsn
}

// freePort returns a port of this host that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	return port
}

// tell has a server carry out a statement.
func tell(dsn, statement string) error {
	res, err := http.Post(dsn, "text/plain", strings.NewReader(statement))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, text)
	}
	return err
}
