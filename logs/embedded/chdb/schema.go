package chdb

import (
	_ "embed"
	"fmt"
	"strings"
	"time"
)

// tableText makes otel.otel_logs as OpenTelemetry's exporter for ClickHouse
// does since its version 0.151, and syncs what was acknowledged to the disk. It has
// TimestampTime as well, which the exporter made before and which dashboards ask
// for. Indexes of its own find rows by that, and by any part of their text.
//
//go:embed otel_logs.sql
var tableText string

// added are what a table of an earlier version lacks. No row is written anew: the
// column of those that are there is computed when it is read.
var added = []string{
	"ADD COLUMN IF NOT EXISTS TimestampTime DateTime DEFAULT toDateTime(Timestamp) CODEC(Delta(4), ZSTD(1)) AFTER Timestamp",
	"ADD INDEX IF NOT EXISTS idx_timestamp_time TimestampTime TYPE minmax GRANULARITY 1",
}

// prepare makes the table when it is missing, and keeps its rows for ttl.
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
	// Rows that are there get the new time when their part is next merged.
	return s.rows("ALTER TABLE otel.otel_logs MODIFY TTL "+expression+" SETTINGS materialize_ttl_after_modify = 0", nil)
}
