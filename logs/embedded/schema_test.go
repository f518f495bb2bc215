package embedded_test

import (
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
	if answer := try(t, web(t, e), "ALTER TABLE otel.otel_logs RENAME COLUMN EventName TO Event"); answer != "" {
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
	if answer := try(t, web(t, e), "DROP TABLE otel.otel_logs"); answer != "" {
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
		if answer := try(t, web(t, e), sql); answer != "" {
			t.Fatal(answer)
		}
	}
	_ = e.Close()
	e, _ = engine(t, dir)
	if answer := try(t, web(t, e), "INSERT INTO otel.otel_logs (Timestamp, Body) SELECT now64(9), 'since'"); answer != "" {
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
