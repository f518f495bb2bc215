package embedded_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// canary is a text that no answer of the engine may ever contain.
const canary = "the canary sings outside of the cage"

// TestCage sends the engine statements for files and connections. Nothing in
// front of the engine checks them, and the engine's user has every right. None
// may succeed.
func TestCage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, _ := engine(t, dir)
	outside := t.TempDir()
	for _, name := range []string{"a.csv", "libevil.so", "a.sqlite"} {
		if err := os.WriteFile(filepath.Join(outside, name), []byte(canary+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	connections, address := listener(t, outside)
	client := web(t, e)
	// The engine's own files can be read with such statements, so the
	// statements themselves are right.
	if err := os.WriteFile(filepath.Join(dir, "data", "a.csv"), []byte(canary), 0o600); err != nil {
		t.Fatal(err)
	}
	if own := ask(t, client, attacks(filepath.Join(dir, "data"), address)[0]); !strings.Contains(own, canary) {
		t.Errorf("the engine's own file is not read: %s", own)
	}
	var all sync.WaitGroup
	for _, sql := range attacks(outside, address) {
		all.Go(func() {
			if answer := try(t, client, sql); strings.Contains(answer, canary) || strings.Contains(answer, "root:") {
				t.Errorf("%s\ngave %s", sql, answer)
			}
		})
	}
	all.Wait()
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	if written, _ := filepath.Glob(filepath.Join(outside, "out*")); len(written) > 0 {
		t.Errorf("the engine wrote %v", written)
	}
}

// listener counts connections to a port and to a socket in a directory.
func listener(t *testing.T, dir string) (*atomic.Int64, string) {
	t.Helper()
	var n atomic.Int64
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	local, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []net.Listener{tcp, local} {
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				n.Add(1)
				_ = c.Close()
			}
		}()
	}
	return &n, tcp.Addr().String()
}

func attacks(dir, address string) []string {
	host, port, _ := net.SplitHostPort(address)
	replace := strings.NewReplacer("DIR", dir, "ADDRESS", address, "HOST", host, "PORT", port)
	list := []string{
		"SELECT * FROM file('DIR/a.csv', 'LineAsString')",
		"SELECT * FROM file('DIR/*', 'RawBLOB', 'a String')",
		"SELECT file('DIR/a.csv')",
		"SELECT * FROM `DIR/a.csv`",
		"SELECT * FROM fileCluster('default', 'DIR/a.csv', 'LineAsString')",
		"SELECT * FROM file('/etc/passwd', 'LineAsString')",
		"SELECT * FROM file('/proc/self/environ', 'RawBLOB', 'a String')",
		"SELECT * FROM file('/proc/1/cmdline', 'RawBLOB', 'a String')",
		"SELECT * FROM filesystem('DIR')",
		"SELECT * FROM executable('cat DIR/a.csv', 'LineAsString', 'a String')",
		"SELECT * FROM executable('a.csv', 'LineAsString', 'a String')",
		"SELECT * FROM sqlite('DIR/a.sqlite', 'a')",
		"INSERT INTO FUNCTION file('DIR/out1', 'CSV', 'a String') VALUES ('x')",
		"SELECT 1 INTO OUTFILE 'DIR/out2'",
		"BACKUP DATABASE otel TO File('DIR/out3')",
		"BACKUP DATABASE otel TO Disk('default', 'DIR/out4')",
		"CREATE TABLE otel.f (a String) ENGINE = File(CSV, 'DIR/a.csv')",
		"CREATE TABLE otel.l (a String) ENGINE = MergeTree ORDER BY a SETTINGS disk = disk(type = local, path = 'DIR/out5/')",
		"CREATE DATABASE fs ENGINE = Filesystem('DIR')",
		"CREATE DICTIONARY otel.d (a String) PRIMARY KEY a SOURCE(FILE(PATH 'DIR/a.csv' FORMAT 'LineAsString')) LAYOUT(COMPLEX_KEY_DIRECT())",
		"CREATE DICTIONARY otel.x (a String) PRIMARY KEY a SOURCE(EXECUTABLE(COMMAND 'cat DIR/a.csv' FORMAT 'LineAsString')) LAYOUT(COMPLEX_KEY_DIRECT())",
		"ATTACH TABLE otel.a FROM 'DIR' (a String) ENGINE = MergeTree ORDER BY a",
		"SELECT catboostEvaluate('DIR/a.csv', 1)",
		"SELECT * FROM url('http://ADDRESS/a', 'CSV', 'a String')",
		"INSERT INTO FUNCTION url('http://ADDRESS/a', 'CSV', 'a String') VALUES ('x')",
		"SELECT * FROM s3('http://ADDRESS/bucket/key', 'CSV', 'a String')",
		"SELECT * FROM azureBlobStorage('http://ADDRESS/', 'container', 'blob', 'account', 'a2V5', 'CSV', 'auto', 'a String')",
		"SELECT * FROM hdfs('hdfs://ADDRESS/a', 'CSV', 'a String')",
		"SELECT * FROM remote('ADDRESS', system.one)",
		"SELECT * FROM remoteSecure('ADDRESS', system.one)",
		"SELECT * FROM mysql('ADDRESS', 'd', 't', 'u', 'p')",
		"SELECT * FROM postgresql('ADDRESS', 'd', 't', 'u', 'p')",
		"SELECT * FROM mongodb('ADDRESS', 'd', 't', 'u', 'p', 'a String')",
		"SELECT * FROM redis('ADDRESS', 'a', 'a String')",
		"SELECT * FROM odbc('DSN=x;Server=HOST;Port=PORT', 'd', 't')",
		"SELECT * FROM jdbc('jdbc:mysql://ADDRESS', 'd', 't')",
		"SELECT * FROM iceberg('http://ADDRESS/bucket/')",
		"SELECT * FROM deltaLake('http://ADDRESS/bucket/')",
	}
	for i := range list {
		list[i] = replace.Replace(list[i])
	}
	return list
}

// patience bounds what must happen, however busy the host is.
const patience = 5 * time.Minute

// ask returns the answer to a statement that must be answered.
func ask(t *testing.T, client *http.Client, sql string) string {
	t.Helper()
	return within(t, patience, client, sql)
}

// try returns the answer to an attack. Some try a connection again and again.
func try(t *testing.T, client *http.Client, sql string) string {
	t.Helper()
	return within(t, 3*time.Second, client, sql)
}

func within(t *testing.T, bound time.Duration, client *http.Client, sql string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://engine/", strings.NewReader(sql))
	if err != nil {
		t.Error(err)
		return ""
	}
	answer, err := client.Do(r)
	if err != nil {
		return fmt.Sprint(err)
	}
	defer answer.Body.Close()
	b, _ := io.ReadAll(answer.Body)
	return string(b)
}

// TestShutdown lets a statement end the engine. Only the engine may end, and it
// must be started again.
func TestShutdown(t *testing.T) {
	t.Parallel()
	e, pid := engine(t, t.TempDir())
	<-pid
	go ask(t, web(t, e), "SYSTEM SHUTDOWN") // it heeds this, and the next one says when it answers
	select {
	case <-pid:
	case <-time.After(patience):
		t.Fatal("the engine did not end, or was not started again")
	}
	if r := ask(t, web(t, e), "SELECT 41 + 1"); !strings.HasPrefix(r, "42") {
		t.Errorf("got %s", r)
	}
}
