package clickhouse_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"sandbox/core/fault"
	"sandbox/logs/clickhouse"
	"sandbox/test/members"
)

// one returns the only value of a query. Its column is called v.
func one(t *testing.T, r clickhouse.Request) string {
	t.Helper()
	res, err := engine.Query(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct{ V string }
	if err := json.Unmarshal(res.Rows, &rows); err != nil || len(rows) != 1 {
		t.Fatalf("%s: %v", res.Rows, err)
	}
	return rows[0].V
}

func TestResult(t *testing.T) {
	t.Parallel()
	r, err := engine.Query(t.Context(), clickhouse.Request{SQL: "SELECT number AS n, toString(number) AS s FROM numbers(3)", QueryID: "my-own-id"})
	if err != nil {
		t.Fatal(err)
	}
	members.Equal(t, "the result", members.Of{
		"count": {r.Count, 3}, "query id": {r.QueryID, "my-own-id"}, "rows read": {r.Statistics.ReadRows, 3},
		"bytes read": {r.Statistics.ReadBytes, 24}, "a time": {r.Statistics.Elapsed > 0, true},
	})
	if want := []clickhouse.Column{{Name: "n", Type: "UInt64"}, {Name: "s", Type: "String"}}; fmt.Sprint(r.Columns) != fmt.Sprint(want) {
		t.Errorf("columns %v, want %v", r.Columns, want)
	}
}

func TestEmptyResult(t *testing.T) {
	t.Parallel()
	r, err := engine.Query(t.Context(), clickhouse.Request{SQL: "SELECT Body FROM otel.otel_logs WHERE ServiceName = 'nobody'"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Count != 0 || strings.Join(strings.Fields(string(r.Rows)), "") != "[]" {
		t.Errorf("got %d rows: %s", r.Count, r.Rows)
	}
}

// TestParams sends every byte that has a meaning for a parser on the way.
func TestParams(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for b := range 128 {
		all.WriteByte(byte(b))
	}
	for _, value := range []string{"", "plain", `\`, `\N`, `\n`, "a\tb\nc\rd", `it's "quoted"`, "a\x00b", "{x:String}", "ä漢😀", "%41+ &=#?", all.String(), strings.Repeat("x", 4096)} {
		sql := "SELECT hex({p:String}) AS v"
		if got, want := one(t, clickhouse.Request{SQL: sql, Params: map[string]string{"p": value}}), fmt.Sprintf("%X", value); got != want {
			t.Errorf("%q came as %s, want %s", value, got, want)
		}
	}
	sql := "SELECT toString({n:UInt64}) || {b:String} || toString({d:DateTime64(9, 'UTC')}) || toString(isNull({z:Nullable(String)})) AS v"
	got := one(t, clickhouse.Request{SQL: sql, Params: map[string]string{"n": "18446744073709551615", "b": "?", "d": "2026-01-02 03:04:05.123456789", "z": `\N`}})
	if got != `18446744073709551615?2026-01-02 03:04:05.1234567890` {
		t.Errorf("got %s", got)
	}
}

// TestText checks statements that the driver would misread: one with marks that
// the driver would take for placeholders, and some that end like a FORMAT clause.
func TestText(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"SELECT 'is it? $1 :name @p1' AS v":                                      "is it? $1 :name @p1",
		"SELECT toString(number) AS v FROM numbers(1) AS format LIMIT 1":         "0",
		"SELECT toString(format) AS v FROM (SELECT 7 AS format) ORDER BY format": "7",
		"SELECT 'x' AS v -- the end":                                             "x",
	} {
		if got := one(t, clickhouse.Request{SQL: sql}); got != want {
			t.Errorf("%s: got %s, want %s", sql, got, want)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	slow := "SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) = 1"
	for name, tt := range map[string]struct {
		sql    string
		limits clickhouse.Limits
		kind   fault.Kind
		says   string
	}{
		"syntax":           {"SELECT FROM WHERE", clickhouse.Limits{}, fault.SQLError, "Syntax error"},
		"unknown column":   {"SELECT nope FROM otel.otel_logs", clickhouse.Limits{}, fault.SQLError, "nope"},
		"unknown function": {"SELECT nope(1)", clickhouse.Limits{}, fault.SQLError, "nope"},
		"type":             {"SELECT 1 + 'a'", clickhouse.Limits{}, fault.SQLError, "Illegal types"},
		"missing param":    {"SELECT {p:String}", clickhouse.Limits{}, fault.SQLError, "p"},
		"late":             {"SELECT throwIf(number = 3000000) FROM numbers(5000000)", clickhouse.Limits{}, fault.SQLError, "throwIf"},
		"twice one name":   {"SELECT number AS a, a FROM numbers(1)", clickhouse.Limits{}, fault.SQLError, `called "a"`},
		"rows to read":     {"SELECT sum(number) FROM numbers(1000)", clickhouse.Limits{ReadRows: 999}, fault.BudgetExceeded, ""},
		"bytes to read":    {"SELECT sum(number) FROM numbers(1000)", clickhouse.Limits{ReadBytes: 7999}, fault.BudgetExceeded, ""},
		"memory":           {"SELECT groupArray(number) FROM numbers(100000000)", clickhouse.Limits{Memory: 50 << 20}, fault.BudgetExceeded, "emory"},
		"result rows":      {"SELECT number FROM numbers(10001)", clickhouse.Limits{ResultRows: 10000}, fault.ResultTooLarge, ""},
		"result bytes":     {"SELECT repeat('x', 1000) FROM numbers(2000)", clickhouse.Limits{ResultBytes: 1 << 20}, fault.ResultTooLarge, ""},
		"constant column":  {"SELECT repeat('x', 1000000) AS c FROM numbers(80)", clickhouse.Limits{ResultBytes: 1 << 20}, fault.ResultTooLarge, ""},
		"time":             {slow, clickhouse.Limits{Time: 300 * time.Millisecond}, fault.Timeout, "Timeout exceeded"},
		"a write":          {"CREATE TABLE otel.x (a Int8) ENGINE = Memory", clickhouse.Limits{}, fault.Upstream, "readonly"},
		"two statements":   {"SELECT 1; SELECT 2", clickhouse.Limits{}, fault.SQLError, ""},
		"a file written":   {"SELECT 1 INTO OUTFILE 'out'", clickhouse.Limits{}, 0, ""}, // a server leaves that clause to its clients
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := engine.Query(t.Context(), clickhouse.Request{SQL: tt.sql, Limits: tt.limits})
			if err == nil {
				if tt.kind != 0 {
					t.Fatalf("got %d rows, want %s", r.Count, tt.kind)
				}
				return
			}
			e := fault.Of(err)
			if tt.kind != 0 && e.Kind != tt.kind || !strings.Contains(e.Message, tt.says) || strings.Contains(e.Message, "(version") {
				t.Errorf("got %s: %q (%v), want %s: %s", e.Kind, e.Message, e.Hidden, tt.kind, tt.says)
			}
		})
	}
}

// TestLimitsHold runs queries that need exactly as much as is allowed.
func TestLimitsHold(t *testing.T) {
	t.Parallel()
	r, err := engine.Query(t.Context(), clickhouse.Request{SQL: "SELECT number FROM numbers(10000)",
		Limits: clickhouse.Limits{Time: time.Minute, ReadRows: 10000, ReadBytes: 80000, Memory: 1 << 30, ResultRows: 10000, ResultBytes: 64 << 20}})
	if err != nil || r.Count != 10000 {
		t.Errorf("got %d rows, %v", r.Count, err)
	}
}

// TestCancel cancels a query that is running, and checks on the engine that it
// has ended.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const mark = "a query to be cancelled"
	failed := make(chan error, 1)
	go func() {
		_, err := engine.Query(ctx, clickhouse.Request{SQL: "SELECT count() AS `" + mark + "` FROM numbers(1000000000000) WHERE sipHash64(number) = 1"})
		failed <- err
	}()
	running := func() bool {
		return one(t, clickhouse.Request{SQL: "SELECT toString(count()) AS v FROM system.processes WHERE query LIKE {m:String} AND query NOT LIKE '%system.processes%'", Params: map[string]string{"m": "%AS `" + mark + "`%"}}) != "0"
	}
	for !running() { // only the engine knows whether the query is running
	}
	cancel()
	if err := <-failed; !fault.Is(err, fault.Canceled) {
		t.Errorf("got %v, want it cancelled", err)
	}
	left := time.Now()
	for running() {
	}
	t.Logf("gone from the engine %v after the client", time.Since(left))
}
