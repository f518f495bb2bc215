package chdb

import (
	_ "embed"
	"fmt"
	"strings"
	"time"
)

// tableText makes otel.otel_logs as OpenTelemetry's exporter for ClickHouse
// does since its version 0.151, and has acknowledged rows synced to the disk.
// It also has the column TimestampTime, which earlier versions of the exporter
// made and which dashboards query. Additional indexes find rows by that column,
// and by any part of their text.
//
//go:embed otel_logs.sql
var tableText string

// added are the changes for a table that an earlier version made. No row is
// rewritten: for existing rows the column is computed when it is read.
var added = []string{
	"ADD COLUMN IF NOT EXISTS TimestampTime DateTime DEFAULT toDateTime(Timestamp) CODEC(Delta(4), ZSTD(1)) AFTER Timestamp",
	"ADD INDEX IF NOT EXISTS idx_timestamp_time TimestampTime TYPE minmax GRANULARITY 1",
}

// prepare makes the table if it is missing, and sets how long it keeps rows.
func (s *server) prepare(ttl time.Duration) error {
	expression := fmt.Sprintf("toDateTime(Timestamp) + toIntervalSecond(%d)", int64(ttl/time.Second))
	statements := []string{"CREATE DATABASE IF NOT EXISTS otel", strings.Replace(tableText, "@TTL@", expression, 1)}
	for _, a := range added {
		statements = append(statements, "ALTER TABLE otel.otel_logs "+a)
	}
	for _, sql := range statements {
		if err := s.rows(sql, nil); err != nil {
			return err
		}
	}
	var engine [][]string
	if err := s.rows("SELECT engine_full FROM system.tables WHERE database = 'otel' AND name = 'otel_logs'", &engine); err != nil {
		return err
	}
	if len(engine) == 1 && strings.Contains(engine[0][0], expression) {
		return nil
	}
	// Existing rows get the new time when their part is next merged.
	return s.rows("ALTER TABLE otel.otel_logs MODIFY TTL "+expression+" SETTINGS materialize_ttl_after_modify = 0", nil)
}
