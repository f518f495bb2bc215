package logs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sandbox/core/fault"
	"sandbox/logs"
	"sandbox/logs/clickhouse"
	"sandbox/test/members"
)

// count sends an aggregate over two days and returns each row as text.
func (s *stage) count(t *testing.T, members map[string]any) string {
	t.Helper()
	all := map[string]any{"from": "2026-03-01T00:00:00Z", "to": "2026-03-03T00:00:00Z"}
	for name, value := range members {
		all[name] = value
	}
	r, err := s.Aggregate(t.Context(), body(t, all))
	var out []string
	for _, row := range rows(t, r, err) {
		var cells []string
		for _, c := range r.Columns {
			cells = append(cells, fmt.Sprint(row[c.Name]))
		}
		out = append(out, strings.Join(cells, "|"))
	}
	return strings.Join(out, ", ")
}

func TestAggregate(t *testing.T) {
	schemas(t, func(t *testing.T, s *stage) {
		a := s.store(t,
			record{"Timestamp": at("2026-03-01T00:00:00Z"), "SeverityNumber": 9, "Body": "x"},
			record{"Timestamp": at("2026-03-01T00:04:59.999999999Z"), "SeverityNumber": 9, "Body": "y"},
			record{"Timestamp": at("2026-03-01T00:05:00Z"), "SeverityNumber": 17, "Body": "x"},
			record{"Timestamp": at("2026-03-02T23:59:59Z"), "SeverityText": "odd", "Body": "x"},
			record{"Timestamp": at("2026-03-03T00:00:00Z"), "SeverityNumber": 9, "Body": "outside"})
		for want, members := range map[string]map[string]any{
			a + "|4":              {},
			a + "|4 ":             {"groupBy": []string{"service", "service"}},
			"INFO|2, |1, ERROR|1": {"groupBy": []string{"severity"}},
			"2026-03-02 23:55:00|1, 2026-03-01 00:05:00|1, 2026-03-01 00:00:00|2":                                      {"groupBy": []string{"time"}},
			"2026-03-02 23:59:00|1, 2026-03-01 00:05:00|1, 2026-03-01 00:04:00|1":                                      {"groupBy": []string{"time"}, "bucketSeconds": 60, "limit": 3},
			"2026-03-02 23:00:00|1, 2026-03-01 00:00:00|3":                                                             {"groupBy": []string{"time"}, "bucketSeconds": 3600},
			"2026-03-02 00:00:00|1, 2026-03-01 00:00:00|3":                                                             {"groupBy": []string{"time"}, "bucketSeconds": 86400},
			a + "||2026-03-02 00:00:00|1, " + a + "|INFO|2026-03-01 00:00:00|2, " + a + "|ERROR|2026-03-01 00:00:00|1": {"groupBy": []string{"time", "severity", "service"}, "bucketSeconds": 86400},
			"INFO|1, |1, ERROR|1 ": {"groupBy": []string{"severity"}, "text": "X"},
			"":                     {"text": "nowhere"},
		} {
			if strings.HasPrefix(want, "INFO|1") { // rows with equal counts are ordered by name
				want = "|1, ERROR|1, INFO|1"
			}
			members["service"] = a
			if got := s.count(t, members); got != strings.TrimSpace(want) {
				t.Errorf("%v: got %s\nwant %s", members, got, want)
			}
		}
		r, err := s.Aggregate(t.Context(), body(t, map[string]any{"from": "2026-03-01T00:00:00Z", "to": "2026-03-03T00:00:00Z", "service": a, "groupBy": []string{"time", "severity", "service"}}))
		if err != nil {
			t.Fatal(err)
		}
		var types []string
		for _, c := range r.Columns {
			types = append(types, c.Name+" "+c.Type)
		}
		if got := strings.Join(types, ", "); got != "service LowCardinality(String), severity String, time DateTime64(0, 'UTC'), count UInt64" {
			t.Errorf("got the columns %s", got)
		}
	})
}

func TestDescribe(t *testing.T) {
	schemas(t, func(t *testing.T, s *stage) {
		r, err := s.Describe(t.Context())
		columns := rows(t, r, err)
		if got := column([]map[string]any{{"c": fmt.Sprint(r.Columns)}}, "c"); got != "[{name String} {type String} {default_kind String} {default_expression String} {comment String} {codec String} {is_in_sorting_key UInt8}]" {
			t.Errorf("got the columns %s", got)
		}
		if s != on(t, "before") {
			if len(columns) != 25 {
				t.Fatalf("got %d columns: %v", len(columns), columns)
			}
			members.Equal(t, "the columns", members.Of{
				"first": {columns[0]["name"], "Timestamp"}, "first in the key": {columns[0]["is_in_sorting_key"], 1.0},
				"second in the key": {columns[1]["is_in_sorting_key"], 0.0}, "kind of TimestampTime": {columns[1]["default_kind"], "DEFAULT"}, "kind of number 17": {columns[17]["default_kind"], "MATERIALIZED"},
			})
			return
		}
		if columns[4]["default_expression"] != "toDateTime(Timestamp)" || columns[17]["name"] != "a`b.c \\" || columns[19]["default_kind"] != "ALIAS" {
			t.Errorf("got %v", columns)
		}
	})
}

// TestColumns checks that a row is read as it was written: every ordinary
// column of the table, whatever its name and place.
func TestColumns(t *testing.T) {
	schemas(t, func(t *testing.T, s *stage) {
		service := s.store(t, record{"Timestamp": at("2026-03-01T00:00:00.123456789Z"), "Body": "b", "LogAttributes": map[string]string{"k": "v"}, "TraceFlags": 1})
		r, err := s.Search(t.Context(), body(t, map[string]any{"from": "2026-03-01T00:00:00Z", "to": "2026-03-01T00:01:00Z", "service": service}))
		row := rows(t, r, err)[0]
		want := map[string]any{"Timestamp": "2026-03-01 00:00:00.123456789", "Body": "b", "ServiceName": service, "TraceFlags": 1.0, "LogAttributes": map[string]any{"k": "v"}}
		if s == on(t, "before") {
			want["Tenant"], want["a`b.c \\"], want["time"], want["TimestampTime"] = "nobody", "7", "a column", "2026-03-01 00:00:00"
		}
		for name, value := range want {
			if fmt.Sprint(row[name]) != fmt.Sprint(value) {
				t.Errorf("%s is %v, want %v", name, row[name], value)
			}
		}
		for _, name := range []string{"Length", "Upper", "__otel_materialized_k8s.pod.name"} {
			if _, has := row[name]; has {
				t.Errorf("%s is there", name)
			}
		}
	})
}

func TestQuery(t *testing.T) {
	schemas(t, func(t *testing.T, s *stage) {
		service := s.store(t, record{"Timestamp": at("2026-03-01T00:00:00Z"), "Body": "b"})
		nasty := "\\ \t\n\r\x00 'a' \"b\" `c` {x:String} $1 ? :n -- /* %"
		r, err := s.Query(t.Context(), body(t, map[string]any{
			"sql":        "WITH {nasty:String} AS n SELECT Body, {b:Bool} AS b, {f:Float64} AS f, {i:Int64} AS i, n, {list:Array(String)} AS list, {at:DateTime64(9)} AS at FROM otel_logs WHERE ServiceName = {service:String};",
			"parameters": map[string]any{"nasty": nasty, "b": true, "f": -1.5, "i": 7, "list": `['a','b\'c']`, "service": service, "at": "2026-01-01 00:00:00.123456789", "unused": "x"},
		}))
		row := rows(t, r, err)[0]
		members.Equal(t, "the row", members.Of{
			"Body": {row["Body"], "b"}, "b": {row["b"], true}, "f": {row["f"], -1.5}, "i": {row["i"], "7"}, "n": {row["n"], nasty},
			"list": {row["list"], []any{"a", "b'c"}}, "at": {row["at"], "2026-01-01 00:00:00.123456789"},
		})
	})
}

// TestHundredParams fills the highest allowed number of placeholders, with the
// longest values.
func TestHundredParams(t *testing.T) {
	t.Parallel()
	s := on(t, "now")
	for name, value := range map[string]string{"ASCII": strings.Repeat("x", 4096), "three bytes": strings.Repeat("漢", 3300)} {
		params := map[string]any{}
		var names []string
		for i := range 100 {
			params[fmt.Sprint("p", i)] = value
			names = append(names, fmt.Sprintf("length({p%d:String})", i))
		}
		r, err := s.Query(t.Context(), body(t, map[string]any{"sql": "SELECT " + strings.Join(names, " + ") + " AS n", "parameters": params}))
		if got, want := column(rows(t, r, err), "n"), fmt.Sprint(100*len(value)); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	s := on(t, "now")
	within := func(change func(*logs.Budget)) *logs.Service {
		budget := ample()
		change(&budget)
		service, err := logs.New(logs.Config{Engine: s.client, Budget: budget})
		if err != nil {
			t.Fatal(err)
		}
		return service
	}
	small := within(func(b *logs.Budget) { b.ReadRows, b.ResultBytes = 20000, 1<<20 })
	brief := within(func(b *logs.Budget) { b.Time = 500 * time.Millisecond })
	for name, tt := range map[string]struct {
		service *logs.Service
		sql     string
		kind    fault.Kind // 0 for a result
		says    string
	}{
		"10,000 rows":          {s.Service, "SELECT number FROM numbers(10000)", 0, ""},
		"10,001 rows":          {s.Service, "SELECT number FROM numbers(10001)", fault.ResultTooLarge, ""},
		"an unknown column":    {s.Service, "SELECT Bdy FROM otel_logs", fault.SQLError, "Bdy"},
		"a wrong type":         {s.Service, "SELECT Body + 1 FROM otel_logs", fault.SQLError, ""},
		"a name twice":         {s.Service, "SELECT 1 AS a, 2 AS a", fault.SQLError, ""},
		"a name twice, unlike": {s.Service, "SELECT * FROM (SELECT 1 AS a) AS x, (SELECT 2 AS a) AS y", 0, ""},
		"a missing value":      {s.Service, "SELECT {a:String}", fault.SQLError, "a"},
		"a wrong value":        {s.Service, "SELECT {p:UInt8}", fault.SQLError, ""},
		"a late failure":       {s.Service, "SELECT throwIf(number = 9000) FROM numbers(9001) SETTINGS max_block_size = 10", fault.SQLRejected, "SETTINGS"},
		"a late one":           {s.Service, "SELECT count() FROM numbers(3000001) WHERE intDiv(1, 3000000 - number) = 7", fault.SQLError, "zero"},
		"rows to read":         {small, "SELECT sum(number) FROM numbers(20001)", fault.BudgetExceeded, ""},
		"bytes of a result":    {small, "SELECT repeat('x', 1000000) AS c, number FROM numbers(10)", fault.ResultTooLarge, ""},
		"memory":               {s.Service, "SELECT length(groupArray(number)) FROM numbers(900000000)", fault.BudgetExceeded, "emory"},
		"time":                 {brief, "SELECT count() FROM numbers(10000) AS a, numbers(10000) AS b WHERE sipHash64(a.number, b.number) = 1", fault.Timeout, ""},
		"totals":               {s.Service, "SELECT number % 2 AS n, count() FROM numbers(10) GROUP BY n WITH TOTALS", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := tt.service.Query(t.Context(), body(t, map[string]any{"sql": tt.sql, "parameters": map[string]any{"p": "x"}}))
			if tt.kind == 0 {
				rows(t, r, err)
				return
			}
			if p := failed(t, err, tt.kind); !strings.Contains(p.Message, tt.says) || strings.Contains(p.Message, "DB::") {
				t.Errorf("got %q", p.Message)
			}
		})
	}
}

// TestChangedTable renames a column without the service's knowledge.
func TestChangedTable(t *testing.T) {
	t.Parallel()
	s, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	day := body(t, map[string]any{"from": "2026-03-01T00:00:00Z", "to": "2026-03-02T00:00:00Z"})
	r, err := s.Search(t.Context(), day)
	if rows(t, r, err); len(r.Columns) != 17 {
		t.Errorf("got %v", r.Columns)
	}
	s.exec(t, "ALTER TABLE otel.otel_logs RENAME COLUMN EventName TO Event")
	r, err = s.Search(t.Context(), day)
	if rows(t, r, err); r.Columns[16] != (clickhouse.Column{Name: "Event", Type: "String"}) {
		t.Errorf("got %v", r.Columns)
	}
	s.exec(t, "ALTER TABLE otel.otel_logs DROP COLUMN SeverityText")
	_, err = s.Aggregate(t.Context(), body(t, map[string]any{"from": "2026-03-01T00:00:00Z", "to": "2026-03-02T00:00:00Z", "severity": "INFO"}))
	failed(t, err, fault.Upstream)
	s.exec(t, "DROP TABLE otel.otel_logs SYNC")
	for name, run := range map[string]func(context.Context, []byte) (logs.Result, error){
		"search": s.Search, "aggregate": s.Aggregate, "describe": func(ctx context.Context, _ []byte) (logs.Result, error) { return s.Describe(ctx) },
	} {
		if _, err := run(t.Context(), day); err == nil {
			t.Errorf("%s: a table that is gone was read", name)
		} else {
			failed(t, err, fault.Unavailable)
		}
	}
}
