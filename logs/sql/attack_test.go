package sql_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sandbox/logs/sql"
	"sandbox/logs/sql/parse"
)

// TestAttacks wants every statement of the attack corpus refused, for the
// reason that it was written for.
func TestAttacks(t *testing.T) {
	t.Parallel()
	all := corpus(t, "attack")
	if len(all) < 400 {
		t.Errorf("only %d attacks", len(all))
	}
	for _, e := range all {
		refused(t, e.name, e.sql, e.want)
	}
}

// refused wants an error with a place inside the statement.
func refused(t *testing.T, name, text, want string) {
	t.Helper()
	s, err := sql.Read(text)
	if err == nil {
		t.Errorf("%s: %s\nwent through as %s", name, text, s.SQL)
		return
	}
	var e *sql.Error
	if !errors.As(err, &e) || e.Offset > len(text) || e.Line < 1 || e.Column < 1 {
		t.Errorf("%s: %#v is no error with a place", name, err)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %s\ngave %q, want %q", name, text, err, want)
	}
}

// TestSize wants statements without bounds refused, whatever nests or repeats.
func TestSize(t *testing.T) {
	t.Parallel()
	const most = parse.MaxLength
	fill := func(s string) string { return strings.Repeat(s, most/len(s)-8) }
	for name, text := range map[string]string{
		"long":               "SELECT '" + strings.Repeat("a", most) + "'",
		"long by characters": "SELECT '" + strings.Repeat("ж", most) + "'",
		"brackets":           "SELECT " + fill("("),
		"closed brackets":    "SELECT " + strings.Repeat("(", most/3) + "1" + strings.Repeat(")", most/3),
		"arrays":             "SELECT " + fill("["),
		"functions":          "SELECT " + fill("abs("),
		"subqueries":         "SELECT " + fill("(SELECT "),
		"from":               fill("SELECT * FROM ("),
		"with":               fill("WITH a AS ("),
		"comments":           fill("/*") + " SELECT 1",
		"minus":              "SELECT " + fill("- ") + "a",
		"not":                "SELECT " + fill("NOT ") + "a",
		"plus chain":         "SELECT " + fill("1+") + "1",
		"index chain":        "SELECT a" + fill("[1]"),
		"member chain":       "SELECT (a)" + fill(".b"),
		"cast chain":         "SELECT a" + fill("::Int8"),
		"case":               "SELECT " + fill("CASE "),
		"interval":           "SELECT " + fill("INTERVAL "),
		"columns":            "SELECT " + fill("COLUMNS("),
		"lambda":             "SELECT " + fill("x->"),
		"ternary":            "SELECT " + fill("1?1:") + "1",
		"between":            "SELECT " + fill("1 BETWEEN 1 AND ") + "1",
		"types":              "SELECT a::" + fill("Array("),
		"in":                 "SELECT " + fill("1 IN ") + "1",
		"position":           "SELECT " + fill("position("),
		"trim":               "SELECT " + fill("trim(both "),
		"cast":               "SELECT " + fill("cast("),
		"bracketed selects":  strings.Repeat("(", 6000) + "SELECT 1" + strings.Repeat(")", 6000) + " + 1",
		"tried selects":      "SELECT " + strings.Repeat("((SELECT 1)+", 2000) + "1" + strings.Repeat(")", 2000),
		"not UTF-8":          "SELECT '\xff'",
		"inlined":            "WITH (" + strings.Repeat("1,", 4000) + "1) AS s SELECT " + strings.Repeat("1 IN s,", 3000) + "1",
	} {
		refused(t, name, text, "")
	}
}

// TestPlace wants errors to name the line and the column, in characters.
func TestPlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"SELECT file('x')":                          "line 1, column 8: the function file is not allowed",
		"SELECT 1,\n  'ж', file('x')":               "line 2, column 8: the function file is not allowed",
		"SELECT 1\nFROM otel_logs\n  FORMAT JSON":   "line 3, column 3: FORMAT clauses are not allowed: results are always JSON",
		"SELECT 1 SETTINGS max_threads = 1":         "line 1, column 10: SETTINGS clauses are not allowed: the server sets them",
		"SELECT * FROM (SELECT 1 INTO OUTFILE 'x')": "line 1, column 25: INTO clauses are not allowed: results are always JSON",
		"SELECT 1,\r\n\t#x":                         "line 2, column 2: unexpected character '#'",
		"SELECT (1":                                 "line 1, column 10: expected ), found the end",
		"DROP TABLE x":                              "line 1, column 1: expected SELECT or WITH, found DROP: only queries are allowed",
		"DESCRIBE otel_logs":                        "the columns of the log table are at GET /v1/observability/schema",
		"SHOW TABLES":                               "the columns of the log table are at GET /v1/observability/schema",
		"EXPLAIN SELECT 1":                          "the statistics of a result say how much was read",
		"SELECT * FROM system . one":                "line 1, column 15: the table system.one is not allowed: a SELECT without FROM has one row",
		"SELECT * FROM system.columns":              "the columns of the log table are at GET /v1/observability/schema",
		"SELECT * FROM otel.sandbox_metrics":        "line 1, column 15: the table otel.sandbox_metrics is not allowed: statements read the table otel.otel_logs",
		"SELECT * FROM sandbox_metrics":             "line 1, column 15: the table sandbox_metrics is not allowed: statements read the table otel.otel_logs",
		"SELECT * FROM other.otel_logs":             "line 1, column 15: the table other.otel_logs is not allowed: statements read the table otel.otel_logs",
		"SELECT * FROM view(SELECT 1)":              "",
		"SELECT * FROM view((SELECT 1))":            "line 1, column 15: the table function view is not allowed: write FROM (SELECT ...)",
		"SELECT * FROM (SELECT 1":                   "line 1, column 24: expected ), found the end",
	} {
		refused(t, fmt.Sprintf("%q", text), text, want)
	}
}
