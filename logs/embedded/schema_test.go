package embedded_test

import (
	"strings"
	"testing"

	"sandbox/logs/clickhouse"
)

// TestSchemaChanges changes the table behind the client's back: it learns it
// from the first failure.
func TestSchemaChanges(t *testing.T) {
	t.Parallel()
	e, _ := engine(t, t.TempDir())
	c := driver(t, e)
	if s, err := c.Schema(t.Context()); err != nil || !s.Has("EventName") || len(s.Columns) != 24 ||
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
