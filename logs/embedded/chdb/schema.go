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

// added are the changes for a table that an earlier version made, each with a query
// that finds rows where the change is there already. No row is rewritten: for
// existing rows the column is computed when it is read.
var added = []struct{ present, change string }{
	{
		"SELECT name FROM system.columns WHERE database = 'otel' AND table = 'otel_logs' AND name = 'TimestampTime'",
		"ADD COLUMN TimestampTime DateTime DEFAULT toDateTime(Timestamp) CODEC(Delta(4), ZSTD(1)) AFTER Timestamp",
	},
	{
		"SELECT name FROM system.data_skipping_indices WHERE database = 'otel' AND table = 'otel_logs' AND name = 'idx_timestamp_time'",
		"ADD INDEX idx_timestamp_time TimestampTime TYPE minmax GRANULARITY 1",
	},
}

// prepare makes the table if it is missing, and sets how long it keeps rows. It
// alters only what differs: each ALTER writes the table's definition anew, which a
// full disk can leave empty.
func (s *server) prepare(ttl time.Duration) error {
	expression := fmt.Sprintf("toDateTime(Timestamp) + toIntervalSecond(%d)", int64(ttl/time.Second))
	for _, sql := range []string{"CREATE DATABASE IF NOT EXISTS otel", strings.Replace(tableText, "@TTL@", expression, 1)} {
		if err := s.rows(sql, nil); err != nil {
			return err
		}
	}
	for _, a := range added {
		var present [][]string
		err := s.rows(a.present, &present)
		if err == nil && len(present) == 0 {
			err = s.rows("ALTER TABLE otel.otel_logs "+a.change, nil)
		}
		if err != nil {
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
