package daemon_test

import (
	"testing"

	"sandbox/test/shards"
)

// onServers starts servers of ClickHouse with the tables that docs/clickhouse.md tells
// to make, and returns the flags of a daemon that uses them. They end with the test.
func onServers(t *testing.T, n int) []string {
	t.Helper()
	c, err := shards.Start(n)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	must(t, c.Define())
	return []string{"--clickhouse-dsn", c.DSN(), "--clickhouse-write-dsn", c.DSN(), "--log-output"}
}
