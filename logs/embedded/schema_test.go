package embedded_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandbox/logs/clickhouse"
)

// TestSchemaChanges changes the table without the client's knowledge. The
// client must learn of it from the first failure.
func TestSchemaChanges(t *testing.T) {
	t.Parallel()
	e, _ := engine(t, t.TempDir())
	c := driver(t, e)
	if s, err := c.Schema(t.Context()); err != nil || !s.Has("EventName") || len(s.Columns) != 25 ||
		s.SortingKey != "toStartOfFiveMinutes(Timestamp), ServiceName, Timestamp" {
		t.Fatalf("got %+v, %v", s, err)
	}
	if answer := ask(t, web(t, e), "ALTER TABLE otel.otel_logs RENAME COLUMN EventName TO Event"); answer != "" {
		t.Fatal(answer)
	}
	if s, err := c.Schema(t.Context()); err != nil || !s.Has("EventName") {
		t.Fatalf("the schema was not kept: %v", err)
	}
	if _, err := c.Query(t.Context(), clickhouse.Request{SQL: "SELECT EventName FROM otel.otel_logs"}); err == nil {
		t.Fatal("a column that is gone was read")
	}
	if s, err := c.Schema(t.Context()); err != nil || s.Has("EventName") || !s.Has("Event") {
		t.Errorf("got the columns of before: %v", err)
	}
	if answer := ask(t, web(t, e), "DROP TABLE otel.otel_logs"); answer != "" {
		t.Fatal(answer)
	}
	c.Forget()
	_, err := c.Schema(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no table otel.otel_logs") {
		t.Errorf("got %v", err)
	}
}

// TestOlderTable starts on the table of a version before TimestampTime. The
// table must get the column, its rows must have it, and they must lose nothing.
func TestOlderTable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, _ := engine(t, dir)
	for _, sql := range []string{
		"ALTER TABLE otel.otel_logs DROP INDEX idx_timestamp_time", "ALTER TABLE otel.otel_logs DROP COLUMN TimestampTime",
		"INSERT INTO otel.otel_logs (Timestamp, Body) SELECT now64(9), 'before'",
	} {
		if answer := ask(t, web(t, e), sql); answer != "" {
			t.Fatal(answer)
		}
	}
	_ = e.Close()
	e, _ = engine(t, dir)
	if answer := ask(t, web(t, e), "INSERT INTO otel.otel_logs (Timestamp, Body) SELECT now64(9), 'since'"); answer != "" {
		t.Fatal(answer)
	}
	const sql = "SELECT groupArray(Body) AS b FROM (SELECT Body FROM otel.otel_logs WHERE TimestampTime = toDateTime(Timestamp) AND TimestampTime > now() - 3600 ORDER BY Body)"
	r, err := driver(t, e).Query(t.Context(), clickhouse.Request{SQL: sql})
	if err != nil || !strings.Contains(string(r.Rows), `["before","since"]`) {
		t.Errorf("got %s, %v", r.Rows, err)
	}
	if s, err := driver(t, e).Schema(t.Context()); err != nil || len(s.Columns) != 25 || s.Columns[1].Name != "TimestampTime" || s.HasSeconds() {
		t.Errorf("got %+v, %v", s, err)
	}
}

// TestDefinitionLost starts an engine whose definition of the table is empty, as a
// full disk can leave it. The rows must be there; without a copy, the table.
func TestDefinitionLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, _ := engine(t, dir)
	if answer := ask(t, web(t, e), "INSERT INTO otel.otel_logs (Timestamp, Body) SELECT now64(9), 'kept'"); answer != "" {
		t.Fatal(answer)
	}
	const sql = "SELECT groupArray(Body) AS b FROM otel.otel_logs"
	file, saved := filepath.Join(dir, "data/metadata/otel/otel_logs.sql"), filepath.Join(dir, "otel_logs.sql")
	_ = e.Close()
	must(t, os.Truncate(file, 0))
	e, _ = engine(t, dir)
	if r, err := driver(t, e).Query(t.Context(), clickhouse.Request{SQL: sql}); err != nil || !strings.Contains(string(r.Rows), `["kept"]`) {
		t.Errorf("with a copy: got %s, %v", r.Rows, err)
	}
	before, err := os.Stat(file)
	must(t, err)
	_ = e.Close()
	e, _ = engine(t, dir)
	if after, err := os.Stat(file); err != nil || !os.SameFile(before, after) {
		t.Errorf("a start wrote the definition anew: %v", err)
	}
	_ = e.Close()
	must(t, errors.Join(os.Truncate(file, 0), os.Remove(saved)))
	e, _ = engine(t, dir)
	if r, err := driver(t, e).Query(t.Context(), clickhouse.Request{SQL: sql}); err != nil || !strings.Contains(string(r.Rows), "[]") {
		t.Errorf("without a copy: got %s, %v", r.Rows, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
