package logs_test

import (
	"context"
	"testing"

	"sandbox/core/fault"
	"sandbox/logs"
)

// TestLetThrough checks that a statement that is allowed is either answered or
// fails because of the statement, and never as a fault of the engine.
func TestLetThrough(t *testing.T) {
	t.Parallel()
	s := on(t, "now")
	for sql, want := range map[string]fault.Kind{
		"SELECT count() FROM zeros(10)":                                             0,
		"SELECT * FROM zeros_mt() LIMIT 3":                                          0,
		"SELECT sum(zero) FROM zeros_mt(20000000000)":                               fault.BudgetExceeded,
		"SELECT * FROM zeros('a')":                                                  fault.SQLError,
		"SELECT * FROM zeros(1, 2)":                                                 fault.SQLRejected,
		"SELECT throwIf(0, 'no')":                                                   0,
		"SELECT throwIf(number = 3, 'three') FROM numbers(10)":                      fault.SQLError,
		"SELECT throwIf(1, 'Code: 164. y). (')":                                     fault.SQLError, // looks like another failure of the engine
		"SELECT throwIf(1, 'Code: 164. DB::Exception: y. (READONLY)')":              fault.SQLError,
		"SELECT throwIf(1, ' DB::Exception: Code: 159. DB::Exception: y). (')":      fault.SQLError,
		"SELECT throwIf(1, '\\n__exception__\\nCode: 60. DB::Exception: y')":        fault.SQLError,
		"SELECT formatRow('JSON', throwIf(number = 1)) FROM numbers(2)":             fault.SQLError,
		"SELECT formatRow('CSV', Body, LogAttributes) FROM default.otel_logs":       0,
		"SELECT version(), timezone(), serverTimezone(), currentDatabase()":         0,
		"SELECT h3kRing(geoToH3(1.0, 1.0, 5), 3), h3IsValid(toUInt64(1))":           0,
		"SELECT h3NumHexagons(200)":                                                 fault.SQLError,
		"SELECT visibleWidth(Body), lowCardinalityKeys(ServiceName) FROM otel_logs": 0,
	} {
		_, err := s.Query(context.Background(), body(t, map[string]any{"sql": sql}))
		if want == 0 && err != nil || want != 0 && !fault.Is(err, want) {
			t.Errorf("%s gave %v, want %s", sql, err, want)
		}
	}
}

// TestTable checks that the name in the server's configuration means the log
// table.
func TestTable(t *testing.T) {
	t.Parallel()
	config := on(t, "now").Config
	config.Table = "app.lines"
	s, err := logs.New(config)
	if err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]fault.Kind{
		"SELECT count() FROM app.lines": 0, "SELECT lines.Body FROM app.lines LIMIT 1": 0, "SELECT count() FROM default.otel_logs": 0,
		"SELECT count() FROM lines": fault.SQLRejected,
	} {
		_, err := s.Query(t.Context(), body(t, map[string]any{"sql": sql}))
		if want == 0 && err != nil || want != 0 && !fault.Is(err, want) {
			t.Errorf("%s gave %v, want %s", sql, err, want)
		}
	}
	for _, name := range []string{"a.b.c", "a b", ".a", "a.", "1a", "system.one; DROP TABLE x"} {
		config.Table = name
		if _, err := logs.New(config); !fault.Is(err, fault.Config) {
			t.Errorf("%q: got %v", name, err)
		}
	}
}
