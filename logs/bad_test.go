package logs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sandbox/core/fault"
	"sandbox/logs"
)

// idle returns a service without an engine. A request that is right fails as
// Unavailable, and one that is wrong fails before that.
func idle(t *testing.T) *logs.Service {
	t.Helper()
	s, err := logs.New(logs.Config{Budget: logs.DefaultBudget(), Missing: errors.New("none here")})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type row struct {
	doc    string
	kind   fault.Kind
	fields string // names of the fields, sorted as they were found
}

const good = fault.Unavailable

// member returns a search body with additional members, which is otherwise
// right.
func member(members string) string {
	return `{"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z"` + members + `}`
}

func interval(from, to string) string { return fmt.Sprintf(`{"from":%s,"to":%s}`, from, to) }

// filters are bodies for which search and aggregate have the same outcome.
func filters() map[string]row {
	const day = `"2026-01-01T00:00:00Z"`
	long := func(n int) string { return `"` + strings.Repeat("ä", n) + `"` }
	rows := map[string]row{
		"least":             {member(""), good, ""},
		"nothing":           {``, fault.Malformed, ""},
		"no JSON":           {`from=x`, fault.Malformed, ""},
		"a list":            {`[]`, fault.Malformed, "the document"},
		"null":              {`null`, fault.Malformed, "the document"},
		"two documents":     {member("") + `{}`, fault.Malformed, ""},
		"cut off":           {`{"from":`, fault.Malformed, ""},
		"not UTF-8":         {member(",\"text\":\"\xff\""), fault.Malformed, ""},
		"a lone surrogate":  {member(`,"text":"\ud800"`), fault.Malformed, ""},
		"a member twice":    {member(`,"limit":1,"limit":2`), fault.Malformed, ""},
		"an extra member":   {member(`,"x":1`), fault.Malformed, "x"},
		"another case":      {member(`,"Service":"x"`), fault.Malformed, "Service"},
		"sql":               {member(`,"sql":"SELECT 1"`), fault.Malformed, "sql"},
		"all missing":       {`{}`, fault.Malformed, "from to"},
		"no from":           {`{"to":` + day + `}`, fault.Malformed, "from"},
		"no to":             {`{"from":` + day + `}`, fault.Malformed, "to"},
		"several at once":   {`{"from":1,"limit":0,"severity":"x"}`, fault.Malformed, "from to severity limit"},
		"a day":             {interval(day, `"2026-01-01"`), fault.Malformed, "to"},
		"no zone":           {interval(day, `"2026-01-01T00:00:00"`), fault.Malformed, "to"},
		"a space":           {interval(day, `"2026-01-01 00:00:00Z"`), fault.Malformed, "to"},
		"one digit":         {interval(day, `"2026-01-01T1:00:00Z"`), fault.Malformed, "to"},
		"a comma":           {interval(day, `"2026-01-01T01:00:00,5Z"`), fault.Malformed, "to"},
		"no such day":       {interval(day, `"2026-02-30T00:00:00Z"`), fault.Malformed, "to"},
		"no such hour":      {interval(day, `"2026-01-01T24:00:00Z"`), fault.Malformed, "to"},
		"no such offset":    {interval(day, `"2026-01-01T02:00:00+24:00"`), fault.Malformed, "to"},
		"many digits":       {interval(day, `"2026-01-01T00:00:00.1234567891234567890123Z"`), good, ""},
		"no digits":         {interval(day, `"2026-01-01T00:00:00.Z"`), fault.Malformed, "to"},
		"cut to nine":       {interval(day, `"2026-01-01T00:00:00.0000000009Z"`), fault.InvalidInterval, "from"},
		"cut to nine, week": {interval(day, `"2026-01-08T00:00:00.0000000009Z"`), good, ""},
		"nine digits":       {interval(day, `"2026-01-01T00:00:00.123456789Z"`), good, ""},
		"small letters":     {interval(day, `"2026-01-01t01:00:00z"`), good, ""},
		"empty time":        {interval(day, `""`), fault.Malformed, "to"},
		"reversed":          {interval(`"2026-01-02T00:00:00Z"`, day), fault.InvalidInterval, "from"},
		"equal":             {interval(day, day), fault.InvalidInterval, "from"},
		"equal, by offset":  {interval(day, `"2026-01-01T05:30:00+05:30"`), fault.InvalidInterval, "from"},
		"a nanosecond":      {interval(day, `"2026-01-01T00:00:00.000000001Z"`), good, ""},
		"by offset":         {interval(day, `"2026-01-01T00:00:00-00:01"`), good, ""},
		"seven days":        {interval(day, `"2026-01-08T00:00:00Z"`), good, ""},
		"and a nanosecond":  {interval(day, `"2026-01-08T00:00:00.000000001Z"`), fault.InvalidInterval, "to"},
		"7 days, by offset": {interval(day, `"2026-01-08T02:00:00+02:00"`), good, ""},
		"all of time":       {interval(`"0001-01-01T00:00:00Z"`, `"9999-12-31T23:59:59Z"`), fault.InvalidInterval, "to"},
		"before 1970":       {interval(`"1965-01-01T00:00:00Z"`, `"1965-01-02T00:00:00Z"`), good, ""},
		"before 1677":       {interval(`"0001-01-01T00:00:00Z"`, `"0001-01-02T00:00:00Z"`), good, ""},
		"after 2299":        {interval(`"9999-12-25T00:00:00Z"`, `"9999-12-31T23:59:59.999999999Z"`), good, ""},
		"service":           {member(`,"service":"x"`), good, ""},
		"service of 255":    {member(`,"service":` + long(255)), good, ""},
		"service of 256":    {member(`,"service":` + long(256)), fault.Malformed, "service"},
		"service empty":     {member(`,"service":""`), fault.Malformed, "service"},
		"text":              {member(`,"text":"\u0000%_'\""`), good, ""},
		"text of 1024":      {member(`,"text":` + long(1024)), good, ""},
		"text of 1025":      {member(`,"text":` + long(1025)), fault.Malformed, "text"},
		"text empty":        {member(`,"text":""`), fault.Malformed, "text"},
		"severity small":    {member(`,"severity":"info"`), fault.Malformed, "severity"},
		"severity empty":    {member(`,"severity":""`), fault.Malformed, "severity"},
		"severity unknown":  {member(`,"severity":"NOTICE"`), fault.Malformed, "severity"},
		"trace":             {member(`,"traceId":"0123456789abcdefABCDEF0123456789"`), good, ""},
		"trace of 31":       {member(`,"traceId":"` + strings.Repeat("a", 31) + `"`), fault.Malformed, "traceId"},
		"trace of 33":       {member(`,"traceId":"` + strings.Repeat("a", 33) + `"`), fault.Malformed, "traceId"},
		"trace with g":      {member(`,"traceId":"` + strings.Repeat("g", 32) + `"`), fault.Malformed, "traceId"},
		"trace and line":    {member(`,"traceId":"` + strings.Repeat("a", 32) + `\n"`), fault.Malformed, "traceId"},
		"trace empty":       {member(`,"traceId":""`), fault.Malformed, "traceId"},
		"limit 1":           {member(`,"limit":1`), good, ""},
		"limit 10000":       {member(`,"limit":10000`), good, ""},
		"limit 1e3":         {member(`,"limit":1e3`), good, ""},
		"limit 0":           {member(`,"limit":0`), fault.Malformed, "limit"},
		"limit -1":          {member(`,"limit":-1`), fault.Malformed, "limit"},
		"limit 10001":       {member(`,"limit":10001`), fault.Malformed, "limit"},
		"limit 1.5":         {member(`,"limit":1.5`), fault.Malformed, "limit"},
		"limit 1e400":       {member(`,"limit":1e400`), fault.Malformed, "limit"},
		"limit 1e30":        {member(`,"limit":1e30`), fault.Malformed, "limit"},
	}
	for _, name := range logs.Severities() {
		rows["severity "+name] = row{member(`,"severity":"` + name + `"`), good, ""}
	}
	for _, name := range []string{"from", "to", "service", "severity", "text", "traceId", "limit"} {
		for _, value := range []string{"null", "true", "[]", "{}", `["x"]`, "7", `"7"`} {
			if right := name == "limit" && value == "7" || (name == "service" || name == "text") && value == `"7"`; right {
				continue
			}
			rows[name+" "+value] = row{member(fmt.Sprintf(`,%q:%s`, name, value)), fault.Malformed, name}
			if name == "from" {
				rows[name+" "+value] = row{interval(value, day), fault.Malformed, name}
			}
			if name == "to" {
				rows[name+" "+value] = row{interval(day, value), fault.Malformed, name}
			}
		}
	}
	return rows
}

func try(t *testing.T, rows map[string]row, run func(context.Context, []byte) (logs.Result, error)) {
	t.Helper()
	for name, tt := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := run(t.Context(), []byte(tt.doc))
			if err == nil {
				t.Fatal("got a result")
			}
			p := fault.Of(err)
			var fields []string
			for _, f := range p.Fields {
				fields = append(fields, f.Field)
				if f.Code == "" || f.Message == "" {
					t.Errorf("a field says nothing: %+v", f)
				}
			}
			if got := strings.Join(fields, " "); p.Kind != tt.kind || got != tt.fields {
				t.Errorf("%.200s: got %s with %q: %s; want %s with %q", tt.doc, p.Kind, got, p.Message, tt.kind, tt.fields)
			}
		})
	}
}

func TestSearchBody(t *testing.T) {
	t.Parallel()
	rows := filters()
	rows["groupBy"] = row{member(`,"groupBy":["time"]`), fault.Malformed, "groupBy"}
	try(t, rows, idle(t).Search)
}

func TestAggregateBody(t *testing.T) {
	t.Parallel()
	rows := filters()
	for by, field := range map[string]string{
		`["service"]`: "", `["service","severity","time"]`: "", `["time","time"]`: "",
		`[]`: "groupBy", `["service","severity","time","time"]`: "groupBy", `["x"]`: "groupBy", `["Service"]`: "groupBy",
		`[""]`: "groupBy", `[null]`: "groupBy[0]", `["time",1]`: "groupBy[1]", `null`: "groupBy", `"time"`: "groupBy", `{}`: "groupBy", `1`: "groupBy",
	} {
		rows["groupBy "+by] = row{member(`,"groupBy":` + by), fault.Malformed, field}
		if field == "" {
			rows["groupBy "+by] = row{member(`,"groupBy":` + by), good, ""}
		}
	}
	for _, n := range []string{"60", "300", "3600", "86400"} {
		rows["bucket "+n] = row{member(`,"bucketSeconds":` + n), good, ""}
	}
	for _, n := range []string{"0", "-60", "61", "300.5", "604800", "null", `"300"`, "true", "[]"} {
		rows["bucket "+n] = row{member(`,"bucketSeconds":` + n), fault.Malformed, "bucketSeconds"}
	}
	try(t, rows, idle(t).Aggregate)
}

func TestQueryBody(t *testing.T) {
	t.Parallel()
	with := func(params string) string { return `{"sql":"SELECT 1","parameters":` + params + `}` }
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"p%d":%d`, i, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	long := func(n int) string { return `{"sql":"SELECT 1 ` + strings.Repeat(" ", n-len("SELECT 1 ")) + `"}` }
	rows := map[string]row{
		"least":             {`{"sql":"SELECT 1"}`, good, ""},
		"nothing":           {``, fault.Malformed, ""},
		"no sql":            {`{}`, fault.Malformed, "sql"},
		"empty":             {`{"sql":""}`, fault.Malformed, "sql"},
		"blank":             {`{"sql":" "}`, fault.SQLRejected, "sql"},
		"null":              {`{"sql":null}`, fault.Malformed, "sql"},
		"a number":          {`{"sql":1}`, fault.Malformed, "sql"},
		"an extra member":   {`{"sql":"SELECT 1","format":"CSV"}`, fault.Malformed, "format"},
		"longest":           {long(logs.MaxSQL), good, ""},
		"too long":          {long(logs.MaxSQL + 1), fault.TooLarge, "sql"},
		"long by bytes":     {`{"sql":"SELECT '` + strings.Repeat("ä", logs.MaxSQL-9) + `'"}`, good, ""},
		"params empty":      {with(`{}`), good, ""},
		"params null":       {with(`null`), fault.Malformed, "parameters"},
		"params list":       {with(`[]`), fault.Malformed, "parameters"},
		"params string":     {with(`"x"`), fault.Malformed, "parameters"},
		"100":               {with(many(100)), good, ""},
		"101":               {with(many(101)), fault.Malformed, "parameters"},
		"a name of 64":      {with(`{"` + strings.Repeat("a", 64) + `":1}`), good, ""},
		"a name of 65":      {with(`{"` + strings.Repeat("a", 65) + `":1}`), fault.Malformed, "parameters." + strings.Repeat("a", 65)},
		"no name":           {with(`{"":1}`), fault.Malformed, "parameters."},
		"a digit first":     {with(`{"1a":1}`), fault.Malformed, "parameters.1a"},
		"an underscore":     {with(`{"_a":1}`), fault.Malformed, "parameters._a"},
		"a dash":            {with(`{"a-b":1}`), fault.Malformed, "parameters.a-b"},
		"an umlaut":         {with(`{"ä":1}`), fault.Malformed, "parameters.ä"},
		"a line":            {with(`{"a\n":1}`), fault.Malformed, "parameters.a\n"},
		"a setting":         {with(`{"max_rows_to_read":0}`), good, ""}, // a parameter may have any name, also that of a setting
		"value null":        {with(`{"a":null}`), fault.Malformed, "parameters.a"},
		"value list":        {with(`{"a":[1]}`), fault.Malformed, "parameters.a"},
		"value object":      {with(`{"a":{}}`), fault.Malformed, "parameters.a"},
		"values":            {with(`{"a":"","b":-1.5e3,"c":true,"d":false}`), good, ""},
		"4096":              {with(`{"a":"` + strings.Repeat("ä", 4096) + `"}`), good, ""},
		"4097":              {with(`{"a":"` + strings.Repeat("a", 4097) + `"}`), fault.Malformed, "parameters.a"},
		"a name twice":      {with(`{"a":1,"a":2}`), fault.Malformed, ""},
		"two":               {`{"sql":"SELECT 1; SELECT 2"}`, fault.SQLRejected, "sql"},
		"a semicolon":       {`{"sql":"SELECT 1;"}`, good, ""},
		"FORMAT":            {`{"sql":"SELECT 1 FORMAT CSV"}`, fault.SQLRejected, "sql"},
		"INTO":              {`{"sql":"SELECT 1 INTO OUTFILE 'x'"}`, fault.SQLRejected, "sql"},
		"SETTINGS":          {`{"sql":"SELECT 1 SETTINGS readonly=0"}`, fault.SQLRejected, "sql"},
		"INSERT":            {`{"sql":"INSERT INTO otel.otel_logs SELECT 1"}`, fault.SQLRejected, "sql"},
		"another table":     {`{"sql":"SELECT * FROM system.one"}`, fault.SQLRejected, "sql"},
		"a function":        {`{"sql":"SELECT file('/etc/passwd')"}`, fault.SQLRejected, "sql"},
		"Identifier":        {`{"sql":"SELECT * FROM {t:Identifier}","parameters":{"t":"system.one"}}`, fault.SQLRejected, "sql"},
		"a type of attack":  {`{"sql":"SELECT {a:String) UNION ALL SELECT file('/etc/passwd'}","parameters":{"a":"x"}}`, fault.SQLRejected, "sql"},
		"a type of nothing": {`{"sql":"SELECT {a:}","parameters":{"a":"x"}}`, fault.SQLRejected, "sql"},
		"a type with state": {`{"sql":"SELECT {a:AggregateFunction(count, UInt8)}","parameters":{"a":"x"}}`, fault.SQLRejected, "sql"},
	}
	try(t, rows, idle(t).Query)
}

func TestBudgetRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*logs.Budget){
		"time": func(b *logs.Budget) { b.Time = 0 }, "rows": func(b *logs.Budget) { b.ReadRows = -1 },
		"result": func(b *logs.Budget) { b.ResultRows = 10001 }, "queries": func(b *logs.Budget) { b.Queries = 0 },
	} {
		b := logs.DefaultBudget()
		change(&b)
		if _, err := logs.New(logs.Config{Budget: b}); err == nil {
			t.Errorf("%s: a budget without a bound was taken", name)
		}
	}
}
