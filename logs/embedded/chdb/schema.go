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

// metricsText makes otel.sandbox_metrics, which has what boxes used over time. Statements
// of callers never name it.
//
//go:embed sandbox_metrics.sql
var metricsText string

// table is one that the engine has: its name, the statement that makes it, and the
// column of the time from which a row's life counts.
type table struct{ name, text, time string }

func tables() []table {
	return []table{{"otel_logs", tableText, "Timestamp"}, {"sandbox_metrics", metricsText, "at"}}
}

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

// prepare makes the tables that are missing, and sets how long they keep rows. It
// alters only what differs: each ALTER writes a table's definition anew, which a
// full disk can leave empty.
func (s *server) prepare(ttl time.Duration) error {
	if err := s.rows("CREATE DATABASE IF NOT EXISTS otel", nil); err != nil {
		return err
	}
	for _, t := range tables() {
		if err := s.rows(strings.Replace(t.text, "@TTL@", t.life(ttl), 1), nil); err != nil {
			return err
		}
	}
	if err := s.change(); err != nil {
		return err
	}
	for _, t := range tables() {
		if err := s.keepFor(t, ttl); err != nil {
			return err
		}
	}
	return nil
}

// life returns the expression for when a row ends.
func (t table) life(ttl time.Duration) string {
	return fmt.Sprintf("toDateTime(%s) + toIntervalSecond(%d)", t.time, int64(ttl/time.Second))
}

// change changes a log table that an earlier version made.
func (s *server) change() error {
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
	return nil
}

// keepFor sets how long a table keeps rows.
func (s *server) keepFor(t table, ttl time.Duration) error {
	var engine [][]string
	if err := s.rows("SELECT engine_full FROM system.tables WHERE database = 'otel' AND name = '"+t.name+"'", &engine); err != nil {
		return err
	}
	if len(engine) == 1 && strings.Contains(engine[0][0], t.life(ttl)) {
		return nil
	}
	// Existing rows get the new time when their part is next merged.
	return s.rows("ALTER TABLE otel."+t.name+" MODIFY TTL "+t.life(ttl)+" SETTINGS materialize_ttl_after_modify = 0", nil)
}
