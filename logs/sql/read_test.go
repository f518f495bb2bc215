package sql_test

import (
	"slices"
	"strings"
	"testing"

	"sandbox/logs/sql"
)

// TestRead shows what is sent in place of what came.
func TestRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"select count() from otel_logs;":                   "SELECT count() FROM `otel`.`otel_logs`",
		"from otel . otel_logs as l select l.Body":         "SELECT `l`.`Body` FROM `otel`.`otel_logs` AS `l`",
		"select a+b*c, -d and not e or f":                  "SELECT `a` + (`b` * `c`), ((- `d`) AND (NOT `e`)) OR `f`",
		"select 'it''s \\x41\\d' -- c":                     `SELECT 'it\'s A\\d'`,
		"select \"a`b\", `\\x73`, “c d”":                   "SELECT `a\\`b`, `s`, `c d`",
		"select x::UInt8, 1.50::Decimal(4,2)":              "SELECT CAST(`x` AS UInt8), CAST('1.50' AS Decimal(4, 2))",
		"select interval 1 day, date '2035-01-01'":         "SELECT toIntervalDay(1), toDate('2035-01-01')",
		"select a from otel_logs join numbers(3) n on a=b": "SELECT `a` FROM `otel`.`otel_logs` ALL INNER JOIN numbers(3) AS `n` ON `a` = `b`",
		"select version(), timeZone(), serverTimezone(), currentDatabase() as d": "SELECT toString('26.7.2.1') AS `version()`, " +
			"toString('UTC') AS `timeZone()`, toString('UTC') AS `serverTimezone()`, toString('otel') AS `d`",
		"select default.otel_logs.Body from default.otel_logs": "SELECT `otel_logs`.`Body` FROM `otel`.`otel_logs`",
		"select 1 except select 2":                             "SELECT 1 EXCEPT ALL SELECT 2",
		"select top 3 a from otel_logs":                        "SELECT `a` FROM `otel`.`otel_logs` LIMIT 3",
		"select a from otel_logs limit 2, 3":                   "SELECT `a` FROM `otel`.`otel_logs` LIMIT 3 OFFSET 2",
		"with t as (select 1 as a) select a from t":            "WITH `t/1` AS (SELECT 1 AS `a`) SELECT `a` FROM `t/1` AS `t`",
		"with t as (select 1) select x in t from otel_logs":    "WITH `t/1` AS (SELECT 1) SELECT `x` IN `t/1` AS `x in t` FROM `otel`.`otel_logs`",
		"with x -> x+1 as f select f(2), f(3) as g":            "WITH `x` -> (`x` + 1) AS `f/1` SELECT `f/1`(2) AS `f(2)`, `f/1`(3) AS `g`",
		"with (1,2) as s select 1 as b where 1 in s":           "WITH (1, 2) AS `s` SELECT 1 AS `b` WHERE 1 IN (1, 2)",
		"with otel_logs as (select 1) select * from otel_logs": "WITH `otel_logs/1` AS (SELECT 1) SELECT * FROM `otel_logs/1` AS `otel_logs`",
		"with a as (select * from b), b as (select 1) select * from a": "WITH `a/1` AS (SELECT * FROM `b/2` AS `b`), `b/2` AS (SELECT 1) " +
			"SELECT * FROM `a/1` AS `a`",
		"select * from otel_logs where Body = {b : String /* c */}": "SELECT * FROM `otel`.`otel_logs` WHERE `Body` = {b:String}",
		"select * except(a) apply(x -> x||'!') replace(1 as b) from otel_logs": "SELECT * EXCEPT(`a`) APPLY(`x` -> (`x` || '!')) REPLACE(1 AS `b`) " +
			"FROM `otel`.`otel_logs`",
		"select sum(a) over (partition by b order by c desc rows 1 preceding) from otel_logs": "SELECT sum(`a`) OVER (PARTITION BY `b` " +
			"ORDER BY `c` DESC ROWS 1 PRECEDING) FROM `otel`.`otel_logs`",
	} {
		s, err := sql.Read(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if s.SQL != want {
			t.Errorf("%s\ngave %s\nwant %s", text, s.SQL, want)
		}
	}
}

// TestParams wants each placeholder once, wherever it stands.
func TestParams(t *testing.T) {
	t.Parallel()
	s, err := sql.Read(`WITH {a:String} AS x, t AS (SELECT {b:Array(Nullable( String ))} AS y)
		SELECT {c:DateTime64(3,'UTC')}, {a:String}, arrayMap(z -> z + {d:UInt8}, [1]), quantile({e:Float64})(1)
		FROM t WHERE 'q' IN {f:Array(String)} ORDER BY 1 LIMIT {g:UInt64} OFFSET { h : UInt64 }`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range s.Params {
		got = append(got, p.Name+" "+p.Type)
		if !strings.Contains(s.SQL, "{"+p.Name+":"+p.Type+"}") {
			t.Errorf("%s does not stand in %s", p.Name, s.SQL)
		}
	}
	slices.Sort(got)
	want := []string{"a String", "b Array(Nullable(String))", "c DateTime64(3, 'UTC')", "d UInt8", "e Float64", "f Array(String)", "g UInt64", "h UInt64"}
	if !slices.Equal(got, want) {
		t.Errorf("params %q, want %q", got, want)
	}
}

func BenchmarkRead(b *testing.B) {
	const text = "SELECT ServiceName, toStartOfInterval(Timestamp, INTERVAL 5 MINUTE) AS t, count() AS n, quantile(0.95)(toFloat64OrZero(LogAttributes['ms'])) AS p95 " +
		"FROM otel_logs WHERE Timestamp >= {from:DateTime64(9)} AND Timestamp < {to:DateTime64(9)} AND lower(Body) LIKE '%timeout%' " +
		"GROUP BY ServiceName, t ORDER BY t DESC, n DESC LIMIT 100"
	for b.Loop() {
		if _, err := sql.Read(text); err != nil {
			b.Fatal(err)
		}
	}
}

// TestTableName wants a name that the server gives to mean the log table, and only
// there.
func TestTableName(t *testing.T) {
	t.Parallel()
	tables := []sql.TableName{{Database: "app", Name: "logs"}, {Name: "lines"}}
	for text, want := range map[string]string{
		"select app.logs.Body, logs.TraceId from app.logs": "SELECT `logs`.`Body`, `logs`.`TraceId` FROM `otel`.`otel_logs` AS `logs`",
		"select count() from lines join app.logs using TraceId": "SELECT count() FROM `otel`.`otel_logs` AS `lines` " +
			"ALL INNER JOIN `otel`.`otel_logs` AS `logs` USING (`TraceId`)",
		"with lines as (select 1) select * from lines": "WITH `lines/1` AS (SELECT 1) SELECT * FROM `lines/1` AS `lines`",
		"select l.Body from app.logs as l":             "SELECT `l`.`Body` FROM `otel`.`otel_logs` AS `l`",
	} {
		if s, err := sql.Read(text, tables...); err != nil || s.SQL != want {
			t.Errorf("%s gave %s, %v\nwant %s", text, s.SQL, err, want)
		}
	}
	for _, text := range []string{"select * from app.lines", "select * from logs", "select * from otel.lines", "select 1 in lines"} {
		if s, err := sql.Read(text, tables...); err == nil {
			t.Errorf("%s went through as %s", text, s.SQL)
		}
	}
}
