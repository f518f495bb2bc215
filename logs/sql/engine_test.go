package sql_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandbox/logs/embedded"
	"sandbox/logs/sql"
	"sandbox/logs/sql/check"
	"sandbox/logs/sql/parse"
	"sandbox/logs/sql/print"
	"sandbox/test/programs"
)

// TestEngine holds the gate to the real engine: what it reads and prints must
// mean the same there.
func TestEngine(t *testing.T) {
	t.Parallel()
	e := startEngine(t)
	t.Run("answers", e.testAnswers)
	t.Run("trees", e.testTrees)
	t.Run("operators", e.testOperators)
	t.Run("depth", e.testDepth)
	t.Run("functions", e.testFunctions)
	t.Run("references", e.testReferences)
	t.Run("niladic", e.testNiladic)
	t.Run("zones", e.testZones)
	t.Run("tables", e.testTableFunctions)
	t.Run("types", e.testTypes)
	t.Run("spaces", e.testSpaces)
	t.Run("texts", e.testTexts)
}

// testAnswers wants each statement of the corpus to have the answer that the
// caller's own text has: the same values, names and types.
func (e *engine) testAnswers(t *testing.T) {
	t.Parallel()
	for _, entry := range corpus(t, "legit") {
		s, err := sql.Read(entry.sql)
		if err != nil {
			t.Errorf("%s: %v", entry.name, err)
			continue
		}
		want, ours := e.answer(t, entry.sql), e.answer(t, s.SQL)
		if want != ours {
			t.Errorf("%s: %s\nprinted %s\nwant %s\ngot  %s", entry.name, entry.sql, s.SQL, want, ours)
		}
	}
}

// answer returns columns, rows and totals.
func (e *engine) answer(t *testing.T, statement string) string {
	t.Helper()
	var a struct{ Meta, Data, Totals json.RawMessage }
	if err := json.Unmarshal([]byte(e.ask(t, statement, "JSONCompact")), &a); err != nil {
		t.Errorf("%s: %v", statement, err)
	}
	return fmt.Sprintf("%s %s %s", a.Meta, a.Data, a.Totals)
}

// testTrees wants the engine to read the same tree from what we print.
func (e *engine) testTrees(t *testing.T) {
	t.Parallel()
	for _, entry := range append(corpus(t, "legit"), corpus(t, "grammar")...) {
		e.sameTree(t, entry.name, entry.sql)
	}
}

func (e *engine) sameTree(t *testing.T, name, statement string) {
	t.Helper()
	q, err := parse.Query(statement)
	if err != nil {
		t.Errorf("%s: %s\n%v", name, statement, err)
		return
	}
	want, got := e.tree(t, statement), e.tree(t, print.Query(q))
	if want != got {
		t.Errorf("%s: %s\nprinted %s\nwant %s\ngot %s", name, statement, print.Query(q), want, got)
	}
}

func (e *engine) tree(t testing.TB, statement string) string {
	t.Helper()
	return e.ask(t, "EXPLAIN AST "+statement, "TSVRaw")
}

// testOperators wants every operator beside every other to bind as the
// engine's does.
func (e *engine) testOperators(t *testing.T) {
	t.Parallel()
	infix := strings.Split("OR,AND,IS NOT DISTINCT FROM,IS DISTINCT FROM,<=>,=,==,!=,<>,<=,>=,<,>,LIKE,ILIKE,NOT LIKE,NOT ILIKE,REGEXP,IN,NOT IN,"+
		"GLOBAL IN,GLOBAL NOT IN,||,+,-,*,/,%,MOD,DIV", ",")
	postfix := strings.Split("IS NULL,IS NOT NULL,[1],.1,::String,BETWEEN l AND h,NOT BETWEEN l AND h,IS TRUE,IS NOT FALSE", ",")
	for _, a := range infix {
		var forms []string
		for _, b := range infix {
			forms = append(forms, fmt.Sprintf("x %s y %s z", a, b))
		}
		for _, b := range []string{"NOT", "-"} {
			forms = append(forms, fmt.Sprintf("%s x %s y", b, a), fmt.Sprintf("x %s %s y %s z", a, b, a))
		}
		for _, b := range postfix {
			forms = append(forms, fmt.Sprintf("x %s y %s", a, b), fmt.Sprintf("x %s %s y", b, a), fmt.Sprintf("NOT x %s y %s", a, b))
		}
		if !slices.Contains([]string{"OR", "IS NOT DISTINCT FROM", "IS DISTINCT FROM"}, a) {
			forms = append(forms, fmt.Sprintf("x BETWEEN y %s z AND w", a))
		}
		for _, form := range []string{"x BETWEEN y AND z %s w", "y -> x %s z", "(x %s y) %[1]s z", "x %s (y %[1]s z)", "x %s y %[1]s z %[1]s w"} {
			forms = append(forms, fmt.Sprintf(form, a))
		}
		e.sameTree(t, a, "SELECT "+strings.Join(forms, ", "))
	}
}

// testDepth wants the engine to read the deepest trees that we print.
func (e *engine) testDepth(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string][2]string{
		"functions":  {"abs(", ")"},
		"brackets":   {"(a + ", ")"},
		"subqueries": {"(SELECT ", ")"},
		"in":         {"1 IN (SELECT ", ")"},
		"chain":      {"a + ", ""},
		"index":      {"", "[1]"},
		"cast":       {"", "::Int8"},
		"not":        {"NOT ", ""},
		"case":       {"CASE WHEN a THEN ", " END"},
		"array":      {"[a, ", "]"},
		"lambda":     {"arrayMap(x -> ", ", a)"},
	} {
		deepest := ""
		for n := 1; ; n++ {
			text := "SELECT " + strings.Repeat(parts[0], n) + "b" + strings.Repeat(parts[1], n)
			if _, err := parse.Query(text); err != nil {
				break
			}
			deepest = text
		}
		if deepest == "" {
			t.Fatal(name)
		}
		e.sameTree(t, name, deepest)
	}
}

// testFunctions wants the allow-list to have only functions that the engine
// has, with the case that it has them in.
func (e *engine) testFunctions(t *testing.T) {
	t.Parallel()
	anyCase, exact := map[string]bool{}, map[string]bool{}
	for _, row := range e.rows(t, "SELECT name, case_insensitive, is_aggregate FROM system.functions") {
		if exact[row[0]] = true; row[1] == "1" {
			anyCase[strings.ToLower(row[0])] = true
		}
	}
	for _, f := range check.Functions() {
		switch {
		case f == "grouping*": // the engine's parser knows it
		case strings.HasSuffix(f, "*"):
			if !anyCase[strings.ToLower(strings.TrimSuffix(f, "*"))] {
				t.Errorf("the engine has no %s in any case", f)
			}
		case !exact[f], anyCase[strings.ToLower(f)]:
			t.Errorf("the engine has no %s in this case only", f)
		}
	}
	for _, row := range e.rows(t, "SELECT name FROM system.aggregate_function_combinators") {
		if _, err := sql.Read("SELECT sum" + row[0] + "(1)"); (err != nil) != slices.Contains([]string{"Null", "SimpleState"}, row[0]) {
			t.Errorf("combinator %s: %v", row[0], err)
		}
	}
}

// testReferences wants every function that takes another by its name to be
// known as such.
func (e *engine) testReferences(t *testing.T) {
	t.Parallel()
	for _, row := range e.rows(t, "SELECT name FROM system.functions WHERE higher_order") {
		if _, err := sql.Read("SELECT " + row[0] + "(file, ['/etc/passwd'])"); err == nil {
			t.Errorf("%s takes any function by its name", row[0])
		}
	}
}

// testNiladic wants a name that the engine answers without brackets to be that
// of an allowed function, or to be refused.
func (e *engine) testNiladic(t *testing.T) {
	t.Parallel()
	for _, row := range e.rows(t, "SELECT name FROM system.functions") {
		if _, err := sql.Read("SELECT " + row[0] + "()"); err == nil {
			continue
		}
		bare := "SELECT `" + row[0] + "`"
		if _, err := sql.Read(bare); err == nil && e.runs(t, bare) {
			t.Errorf("%s returns an answer without brackets", row[0])
		}
	}
}

// testZones wants no time zone to reach the engine that is not a plain name,
// in any argument of any function that knows of zones.
func (e *engine) testZones(t *testing.T) {
	t.Parallel()
	const zone = "'file:/nonexistent/zone'"
	const date, number, text, interval = "toDateTime('2035-01-01 00:00:00')", "1", "'2035-01-01 00:00:00'", "toIntervalDay(1)"
	shapes := [][]string{
		{zone}, {date, zone}, {number, zone}, {text, zone}, {date, number, zone}, {text, number, zone}, {number, number, zone}, {text, "'%Y'", zone},
		{date, "'%Y'", zone}, {number, "'%Y'", zone}, {date, interval, zone}, {date, interval, date, zone}, {"'day'", date, zone},
		{"'day'", date, date, zone}, {text, zone, date}, {number, number, number, number, number, number, zone},
	}
	rows := e.rows(t, "SELECT name FROM system.functions WHERE match(concat(name, alias_to, syntax, arguments), '(?i)zone')")
	if len(rows) < 50 {
		t.Errorf("only %d functions know of zones", len(rows))
	}
	for _, row := range rows {
		for _, shape := range shapes {
			statement := "SELECT " + row[0] + "(" + strings.Join(shape, ", ") + ")"
			s, err := sql.Read(statement)
			if err != nil {
				continue
			}
			if answer, _ := e.post(t, s.SQL, "TSV"); strings.Contains(answer, "zone file:/nonexistent") {
				t.Errorf("%s looks for the zone", statement)
			}
		}
	}
}

// testTableFunctions wants only harmless ones through, and knows of each one
// that has the name of an allowed function.
func (e *engine) testTableFunctions(t *testing.T) {
	t.Parallel()
	harmless := []string{"numbers", "numbers_mt", "zeros", "zeros_mt", "generateSeries", "generate_series", "values"}
	for _, row := range e.rows(t, "SELECT name FROM system.table_functions") {
		if _, err := sql.Read("SELECT * FROM " + row[0] + "(1)"); (err == nil) != slices.Contains(harmless, row[0]) {
			t.Errorf("table function %s: %v", row[0], err)
		}
		if _, err := sql.Read("SELECT 1 IN " + row[0] + "('x')"); err == nil {
			t.Errorf("the table function %s may stand right of IN", row[0])
		}
	}
}

// testTypes wants all the engine's types to be allowed but those of states and
// the exotic.
func (e *engine) testTypes(t *testing.T) {
	t.Parallel()
	refused := []string{"AggregateFunction", "SimpleAggregateFunction", "QBit", "Geometry", "GEOMETRY", "Object", "SET"}
	for _, row := range e.rows(t, "SELECT name FROM system.data_type_families") {
		_, err := sql.Read("SELECT {p:" + row[0] + "}")
		if (err != nil) != slices.Contains(refused, row[0]) {
			t.Errorf("type %s: %v", row[0], err)
		}
	}
}

// testSpaces wants what we pass over to be white space for the engine, too:
// were it not, a statement would be answered that the engine refuses.
func (e *engine) testSpaces(t *testing.T) {
	t.Parallel()
	for r := rune(1); r < 0x3100; r++ {
		statement := fmt.Sprintf("SELECT%c1", r)
		if q, err := parse.Query(statement); err == nil && print.Query(q) == "SELECT 1" && e.ask(t, statement, "TSV") != "1\n" {
			t.Errorf("%U is no white space", r)
		}
	}
}

// testTexts wants every byte of a string to reach the engine.
func (e *engine) testTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`SELECT hex('it''s \'q\' \\ \d\%\_ \x00\x7f\xff\n\t\0\a\b\e\f\r\v\/\N\" ж 😀')`, "SELECT hex('a\tb\rc\nd\x01\x7f')",
		`SELECT hex($x$'\n$$"$x$)`, `SELECT hex(x'00ff'), hex(x'123'), hex(b'101'), hex(b'111111111')`, `SELECT hex(‘\n'’)`,
		"SELECT 1 AS `a\\x01\\n\\0\\`\\\\\\d ж 😀 '\"``\t\n`, 2 AS \"b\\\"`\"\"'\", 3 AS “c\\n`”",
	} {
		s, err := sql.Read(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if want, got := e.answer(t, text), e.answer(t, s.SQL); want != got {
			t.Errorf("%s: want %s, got %s", text, want, got)
		}
	}
}

// An engine is one embedded engine with 2000 rows in otel.otel_logs, and the
// same in default.otel_logs: there the caller's text finds the table when it
// names no database.
type engine struct{ client *http.Client }

func startEngine(t testing.TB) *engine {
	t.Helper()
	child, err := embedded.Start(t.Context(), embedded.Options{Dir: t.TempDir(), HelperDir: programs.Dir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := child.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return child.Dial(ctx) }}
	t.Cleanup(transport.CloseIdleConnections)
	e := &engine{&http.Client{Transport: transport}}
	rows, err := os.ReadFile(filepath.Join("testdata", "rows.sql"))
	if err != nil {
		t.Fatal(err)
	}
	e.ask(t, string(rows), "TSV")
	e.ask(t, "CREATE TABLE default.otel_logs AS otel.otel_logs", "TSV")
	e.ask(t, strings.Replace(string(rows), "otel.otel_logs", "default.otel_logs", 1), "TSV")
	return e
}

func (e *engine) ask(t testing.TB, statement, format string) string {
	t.Helper()
	answer, ok := e.post(t, statement, format)
	if !ok {
		t.Errorf("%s\nfailed: %s", statement, answer)
	}
	return answer
}

func (e *engine) runs(t *testing.T, statement string) bool {
	t.Helper()
	_, ok := e.post(t, statement, "TSV")
	return ok
}

// post runs a statement on one thread, so that sums of floats come out alike.
func (e *engine) post(t testing.TB, statement, format string) (answer string, ok bool) {
	t.Helper()
	settings := url.Values{"default_format": {format}, "max_threads": {"1"}}
	r, err := e.client.Post("http://engine/?"+settings.Encode(), "text/plain", strings.NewReader(statement))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), r.StatusCode == http.StatusOK
}

func (e *engine) rows(t *testing.T, statement string) [][]string {
	t.Helper()
	var rows [][]string
	for line := range strings.Lines(e.ask(t, statement, "TSV")) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return rows
}
