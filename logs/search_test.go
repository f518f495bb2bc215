package logs_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"sandbox/logs"
)

// before makes the second engine's table as OpenTelemetry's exporter did before
// its version 0.151, with additional columns of a user, and in another order.
const before = `CREATE TABLE otel.otel_logs (
	Tenant LowCardinality(String) DEFAULT 'nobody',
	Body String, ServiceName LowCardinality(String),
	Timestamp DateTime64(9), TimestampTime DateTime DEFAULT toDateTime(Timestamp),
	TraceId String, SpanId String, TraceFlags UInt8, SeverityText LowCardinality(String), SeverityNumber UInt8,
	ResourceSchemaUrl LowCardinality(String), ResourceAttributes Map(LowCardinality(String), String),
	ScopeSchemaUrl LowCardinality(String), ScopeName String, ScopeVersion LowCardinality(String),
	ScopeAttributes Map(LowCardinality(String), String), LogAttributes Map(LowCardinality(String), String),
	` + "`a``b.c \\\\`" + ` UInt64 DEFAULT 7, Length UInt64 MATERIALIZED length(Body), Upper String ALIAS upper(Body), time String DEFAULT 'a column',
	INDEX idx_body Body TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 8
) ENGINE = MergeTree PARTITION BY toDate(TimestampTime) PRIMARY KEY (ServiceName, TimestampTime)
ORDER BY (ServiceName, TimestampTime, Timestamp) SETTINGS index_granularity = 64`

// schemas runs a test on both tables.
func schemas(t *testing.T, test func(*testing.T, *stage)) {
	t.Parallel()
	t.Run("now", func(t *testing.T) {
		t.Parallel()
		test(t, on(t, "now"))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		test(t, on(t, "cluster"))
	})
	t.Run("before", func(t *testing.T) {
		t.Parallel()
		s := on(t, "before")
		changed.Do(func() {
			s.exec(t, "DROP TABLE otel.otel_logs SYNC")
			s.exec(t, before)
			s.client.Forget()
		})
		test(t, s)
	})
}

// search searches an hour and returns the bodies of its rows.
func (s *stage) search(t *testing.T, members map[string]any) string {
	t.Helper()
	all := map[string]any{"from": "2026-03-01T00:00:00Z", "to": "2026-03-01T01:00:00Z"}
	for name, value := range members {
		all[name] = value
	}
	r, err := s.Search(t.Context(), body(t, all))
	return column(rows(t, r, err), "Body")
}

func TestInterval(t *testing.T) {
	schemas(t, func(t *testing.T, s *stage) {
		service := s.store(t,
			record{"Timestamp": at("2026-02-28T23:59:59.999999999Z"), "Body": "before"},
			record{"Timestamp": at("2026-03-01T00:00:00Z"), "Body": "first"},
			record{"Timestamp": at("2026-03-01T00:30:00.000000001Z"), "Body": "middle"},
			record{"Timestamp": at("2026-03-01T00:59:59.999999999Z"), "Body": "last"},
			record{"Timestamp": at("2026-03-01T01:00:00Z"), "Body": "behind"})
		for _, tt := range []struct{ from, to, want string }{
			{"2026-03-01T00:00:00Z", "2026-03-01T01:00:00Z", "last middle first"},
			{"2026-03-01T00:00:00.000000001Z", "2026-03-01T00:59:59.999999999Z", "middle"},
			{"2026-03-01T01:00:00+01:00", "2026-03-01T00:30:00.000000002+00:00", "middle first"},
			{"2026-02-28T23:59:59.999999999Z", "2026-03-01T00:00:00Z", "before"},
			{"2026-02-25T00:00:00Z", "2026-03-04T00:00:00Z", "behind last middle first before"},
			{"1960-02-25T00:00:00Z", "1960-02-26T00:00:00Z", ""},
			{"0001-01-01T00:00:00Z", "0001-01-02T00:00:00Z", ""},
			{"2262-04-10T00:00:00Z", "2262-04-13T00:00:00Z", ""},
			{"9999-02-25T00:00:00Z", "9999-02-26T00:00:00Z", ""},
		} {
			if got := s.search(t, map[string]any{"service": service, "from": tt.from, "to": tt.to}); got != tt.want {
				t.Errorf("%s to %s: got %q, want %q", tt.from, tt.to, got, tt.want)
			}
		}
	})
}

// TestFarTimes stores rows whose times are outside the range of the types in
// the table's key.
func TestFarTimes(t *testing.T) {
	schemas(t, func(t *testing.T, s *stage) {
		if s == on(t, "now") {
			s.exec(t, "ALTER TABLE otel.otel_logs REMOVE TTL") // the TTL would remove them as too old
		}
		var all []record
		times := []string{"1905-06-01T00:00:00Z", "1969-12-31T23:59:59.5Z", "1970-01-01T00:00:00Z", "2106-02-07T06:28:15.5Z", "2106-02-07T06:28:16Z", "2150-01-01T00:00:00Z", "2262-04-11T23:00:00Z"}
		for _, far := range times {
			all = append(all, record{"Timestamp": at(far), "Body": far})
		}
		service := s.store(t, all...)
		for _, far := range times {
			x, _ := time.Parse(time.RFC3339Nano, far)
			for _, around := range []time.Duration{time.Second, 80 * time.Hour} {
				members := map[string]any{"service": service, "from": x.Add(-around).Format(time.RFC3339Nano), "to": x.Add(around).Format(time.RFC3339Nano)}
				if got := s.search(t, members); !strings.Contains(got, far) {
					t.Errorf("%s and %v around it: got %q", far, around, got)
				}
				members["groupBy"] = []string{"time"}
				members["bucketSeconds"] = 60
				r, err := s.Aggregate(t.Context(), body(t, members))
				want := x.Truncate(time.Minute).Format(time.DateTime)
				if got := column(rows(t, r, err), "time"); !strings.Contains(got, want) {
					t.Errorf("%s: counted at %q, want %s", far, got, want)
				}
			}
		}
	})
}

func TestFilters(t *testing.T) {
	schemas(t, func(t *testing.T, s *stage) {
		const trace = "0123456789abcdef0123456789abcdef"
		stamp := func(n int) string { return at(fmt.Sprintf("2026-03-01T00:00:%02dZ", 59-n)) }
		service := s.store(t,
			record{"Timestamp": stamp(0), "Body": "1", "SeverityNumber": 1},
			record{"Timestamp": stamp(1), "Body": "4", "SeverityNumber": 4},
			record{"Timestamp": stamp(2), "Body": "5", "SeverityNumber": 5, "SeverityText": "FATAL"},
			record{"Timestamp": stamp(3), "Body": "9", "SeverityNumber": 9, "TraceId": trace},
			record{"Timestamp": stamp(4), "Body": "16", "SeverityNumber": 16, "TraceId": strings.ToUpper(trace)},
			record{"Timestamp": stamp(5), "Body": "20", "SeverityNumber": 20},
			record{"Timestamp": stamp(6), "Body": "24", "SeverityNumber": 24},
			record{"Timestamp": stamp(7), "Body": "25", "SeverityNumber": 25, "SeverityText": "FATAL"},
			record{"Timestamp": stamp(8), "Body": "info", "SeverityText": "info"},
			record{"Timestamp": stamp(9), "Body": "Error", "SeverityText": "Error"},
			record{"Timestamp": stamp(10), "Body": "notice", "SeverityText": "notice"},
			record{"Timestamp": stamp(11), "Body": "none"})
		for want, members := range map[string]map[string]any{
			"1 4 5 9 16 20 24 25 info Error notice none": {},
			"1 4":      {"severity": "TRACE"},
			"5":        {"severity": "DEBUG"},
			"9 info":   {"severity": "INFO"},
			"16":       {"severity": "WARN"},
			"20 Error": {"severity": "ERROR"},
			"24":       {"severity": "FATAL"},
			"9 16":     {"traceId": trace},
			"9 16 ":    {"traceId": strings.ToUpper(trace)},
			"9":        {"traceId": trace, "severity": "INFO"},
			"":         {"traceId": strings.Repeat("0", 32)},
			"1 4 5":    {"limit": 3},
		} {
			members["service"] = service
			if got := s.search(t, members); got != strings.TrimSpace(want) {
				t.Errorf("%v: got %q, want %q", members, got, want)
			}
		}
		if got := s.search(t, map[string]any{"service": service[:len(service)-1]}); got != "" {
			t.Errorf("a part of the service's name finds %q", got)
		}
		r, err := s.Aggregate(t.Context(), body(t, map[string]any{"from": "2026-03-01T00:00:00Z", "to": "2026-03-01T01:00:00Z", "service": service, "groupBy": []string{"severity"}}))
		counted := rows(t, r, err)
		if got := column(counted, "severity") + " " + column(counted, "count"); got != " ERROR INFO TRACE DEBUG FATAL WARN 3 2 2 2 1 1 1" {
			t.Errorf("got %q", got)
		}
	})
}

func TestText(t *testing.T) {
	schemas(t, func(t *testing.T, s *stage) {
		for _, tt := range []struct {
			body, text string
			found      bool
		}{
			{"the Disk is full", "DISK", true}, {"the Disk is full", "sk is f", true}, {"the Disk is full", "disc", false},
			{"100% of a_b", "0% OF A_", true}, {"100 of ab", "0%", false}, {"axb", "a_b", false}, {"axb", "a.b", false}, {"a.b", "A.B", true},
			{`back\slash 'quote' "d" ` + "`", `K\SLASH 'QUOTE' "D" ` + "`", true}, {"tab\tline\nend\x00nul", "TAB\tLINE\nEND\x00NUL", true},
			{"(?i)[a-z]*$^{x:String}", "(?I)[A-Z]*$^{X:STRING}", true}, {"{p0:String}", "{P0:string}", true},
			{"ÄRGER mit Übermaß", "ärger MIT über", true}, {"straẞe", "STRAßE", true}, {"ПРИВЕТ, мир", "привет, МИР", true},
			{"ὈΔΥΣΣΕΎΣ", "ὀδυσσεύς", true}, {"ὀδυσσεύς", "ὈΔΥΣΣΕΎΣ", true}, {"300 \u212A", "300 k", true}, {"300 k", "300 \u212A", true}, {"ſo", "SO", true},
			{"Ⱥbc", "ⱥBC", true}, {"漢字 😀", "漢字 😀", true}, {"𐐀𐐁", "𐐨𐐩", true}, {"ǆ", "ǅ", true}, {"kkkkksssss", "KKKKKSSSSS", true},
			{strings.Repeat("Äs", 512), strings.Repeat("äS", 512), true}, {strings.Repeat("Ⱥ", 1024), strings.Repeat("ⱥ", 1024), true},
			{strings.Repeat("x", 1024) + "y", strings.Repeat("X", 1023) + "Y", true}, {strings.Repeat("k", 1024), strings.Repeat("K", 1023) + "L", false},
		} {
			t.Run(fmt.Sprintf("%.20q in %.20q", tt.text, tt.body), func(t *testing.T) {
				t.Parallel()
				service := s.store(t, record{"Timestamp": at("2026-03-01T00:00:00Z"), "Body": tt.body})
				if got := s.search(t, map[string]any{"service": service, "text": tt.text}); got != "" != tt.found {
					t.Errorf("found %q, want %t", got, tt.found)
				}
			})
		}
		t.Run("bytes", func(t *testing.T) {
			t.Parallel()
			service := fmt.Sprint("bytes ", time.Now().UnixNano())
			s.exec(t, "INSERT INTO otel.otel_logs (Timestamp, ServiceName, Body) VALUES ('"+at("2026-03-01T00:00:00Z")+"', '"+service+"', unhex('ff416bfe'))")
			if got := s.search(t, map[string]any{"service": service, "text": "aK"}); got == "" {
				t.Error("text between bytes that are none is not found")
			}
		})
	})
}

// TestFolds stores each letter of Unicode that has cases, and checks that a
// search for the letter in another case finds it.
func TestFolds(t *testing.T) {
	t.Parallel()
	s := on(t, "now")
	var bodies []string
	var wants []rune
	for r := rune('A'); r <= unicode.MaxRune; r++ {
		if other := unicode.SimpleFold(r); other != r {
			bodies, wants = append(bodies, string(other)), append(wants, r)
		}
	}
	for _, chunk := range []int{0, 1} { // all of them, forwards and backwards, in one text
		text := string(wants)
		if chunk == 1 {
			slices.Reverse(bodies)
			slices.Reverse(wants)
			text = string(wants)
		}
		parts := []rune(text)
		all := strings.Join(bodies, "")
		service := s.store(t, record{"Timestamp": at("2026-03-01T00:00:00Z"), "Body": all})
		for from := 0; from < len(parts); from += 500 {
			piece := string(parts[from:min(from+500, len(parts))])
			if s.search(t, map[string]any{"service": service, "text": piece}) == "" {
				t.Errorf("not found: %q", piece)
			}
		}
	}
}

func TestOrder(t *testing.T) {
	schemas(t, func(t *testing.T, s *stage) {
		stamp := at("2026-03-01T00:10:00Z")
		var all []record
		var want []string
		for _, trace := range []string{"", "a", "b"} {
			for _, span := range []string{"", "s"} {
				for _, text := range []string{"x", "y"} {
					all = append(all, record{"Timestamp": stamp, "TraceId": trace, "SpanId": span, "Body": trace + "/" + span + "/" + text})
					want = append(want, trace+"/"+span+"/"+text)
				}
			}
		}
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		service := s.store(t, all...)
		if got := s.search(t, map[string]any{"service": service}); got != strings.Join(want, " ") {
			t.Errorf("got %q", got)
		}
		if got := s.search(t, map[string]any{"service": service, "limit": 5}); got != strings.Join(want[:5], " ") {
			t.Errorf("got %q", got)
		}
	})
}

// TestWindows spreads rows over seven days. Whatever the limit of the search,
// the rows must be the newest, in order, and each must be there once.
func TestWindows(t *testing.T) {
	schemas(t, func(t *testing.T, s *stage) {
		end := time.Date(2026, 4, 8, 0, 0, 0, 0, time.UTC)
		type entry struct {
			at   time.Time
			body string
		}
		var entries []entry
		for i := range 300 {
			age := time.Duration(rand.Int64N(int64(logs.MaxInterval))) + 1
			if i%3 == 0 {
				age = time.Duration(i+1) * time.Second
			}
			entries = append(entries, entry{end.Add(-age), fmt.Sprint("b", i)})
		}
		entries = append(entries, entry{end.Add(-5 * time.Minute), "edge"}, entry{end.Add(-35 * time.Minute), "edge2"}, entry{end.Add(-logs.MaxInterval), "first"})
		var all []record
		for _, e := range entries {
			all = append(all, record{"Timestamp": at(e.at.Format(time.RFC3339Nano)), "Body": e.body})
		}
		service := s.store(t, all...)
		slices.SortStableFunc(entries, func(a, b entry) int { return b.at.Compare(a.at) })
		var want []string
		for _, e := range entries {
			want = append(want, e.body)
		}
		for _, limit := range []int{1, 99, 101, 102, 150, 302, 303, 10000} {
			got := s.search(t, map[string]any{"service": service, "from": end.Add(-logs.MaxInterval).Format(time.RFC3339), "to": end.Format(time.RFC3339), "limit": limit})
			if w := strings.Join(want[:min(limit, len(want))], " "); got != w {
				t.Errorf("limit %d: got %s\nwant %s", limit, got, w)
			}
		}
	})
}
