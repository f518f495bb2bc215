package conformance_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandbox/daemon"
)

// logServers returns the settings of further servers: tight has an engine with
// a small budget of rows and bytes, brief one with a small budget of time, none has
// no engine and a low rate, and the engines of wrong and page are web servers that are
// no ClickHouse: one knows no path, the other all. Only a case that wants a timeout may
// ask brief, because any query can take that long on a busy host.
func logServers(t *testing.T, h *host) map[string]daemon.Config {
	t.Helper()
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>It works!</html>") }))
	t.Cleanup(page.Close)
	return map[string]daemon.Config{
		"tight": {LogsTable: "app.lines", Logs: daemon.Logs{Budget: daemon.Budget{ReadRows: 20000, ResultBytes: 1 << 20}}},
		"brief": {Logs: daemon.Logs{Budget: daemon.Budget{Time: time.Second}}},
		"none":  {ChdbLib: h.share + "/nothing.so", Logs: daemon.Logs{Budget: daemon.Budget{PerMinute: 2}}},
		"wrong": {ClickHouseDSN: other.URL},
		"page":  {ClickHouseDSN: page.URL},
	}
}

// generous is a budget of queries that no number of cases uses up.
var generous = daemon.Logs{Budget: daemon.Budget{Queries: 1000, PerMinute: 1 << 20}}

// firstDay is when the rows of cases begin: a midnight, so that all buckets
// begin there, and not so long ago that the engine drops them.
func firstDay() time.Time { return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -2) }

func days() map[string]string {
	first := firstDay()
	return map[string]string{
		"from": first.Format(time.RFC3339), "to": first.AddDate(0, 0, 1).Format(time.RFC3339), "day": first.Format(time.DateOnly),
		"week": first.AddDate(0, 0, 7).Format(time.RFC3339), "over_a_week": first.AddDate(0, 0, 7).Add(time.Second).Format(time.RFC3339),
	}
}

// operations of the log queries and their paths.
var operations = map[string]string{
	"schema": "/v1/observability/schema", "query": "/v1/observability/query",
	"search": "/v1/observability/logs/search", "aggregate": "/v1/observability/logs/aggregate",
}

// overLogs adds the verbs of the log queries to those of REST. ask is one of
// the operations, of which it returns the status, the head and the body.
func overLogs(tcp bool, verbs map[string]func(*running, object) result) map[string]func(*running, object) result {
	on := func(operation string) func(*running, object) result {
		return func(r *running, a object) result {
			c := r.client(tcp)
			if operation == "schema" {
				return c.ask(r, "GET", operations[operation], nil)
			}
			return c.ask(r, "POST", operations[operation], between(r, operation, a))
		}
	}
	maps.Copy(verbs, map[string]func(*running, object) result{
		"schema": on("schema"), "query": on("query"), "search": on("search"), "aggregate": on("aggregate"),
		"ask": func(r *running, a object) result {
			to := without(a, "of")
			to["path"] = operations[a["of"].(string)]
			if a["of"] != "schema" {
				to["method"] = "POST"
			}
			return r.client(tcp).raw(r, tcp, to)
		},
		"log":     logged,
		"arrived": arrived,
	})
	return verbs
}

// between adds the case's interval to a search that names none.
func between(r *running, operation string, a object) object {
	if operation == "query" {
		return a
	}
	whole := object{"from": r.vars["from"], "to": r.vars["to"]}
	maps.Copy(whole, a)
	return whole
}

// logged stores rows by OTLP. at is in seconds from the first day on, nanos is
// added to it.
func logged(r *running, a object) result {
	var records []any
	for _, row := range list(a["rows"]) {
		seconds, _ := row["at"].(int)
		nanos, _ := row["nanos"].(int)
		at := firstDay().Add(time.Duration(seconds)*time.Second + time.Duration(nanos))
		number, _ := row["severity"].(int)
		records = append(records, object{
			"timeUnixNano": strconv.FormatInt(at.UnixNano(), 10), "body": object{"stringValue": text(row["body"], "")},
			"severityNumber": number, "severityText": text(row["severity_text"], ""), "traceId": text(row["trace"], ""),
		})
	}
	service := object{"key": "service.name", "value": object{"stringValue": text(a["service"], r.vars["name"])}}
	return r.client(true).ask(r, "POST", "/v1/logs", object{"resourceLogs": []any{object{
		"resource": object{"attributes": []any{service}}, "scopeLogs": []any{object{"logRecords": records}},
	}}})
}

// arrived asks until so many rows are there: the daemon stores what boxes print
// beside everything else, and a table does not signal that it grows.
func arrived(r *running, a object) result {
	deadline := time.After(time.Minute)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		got := r.client(true).ask(r, "POST", operations["query"], without(a, "rows", "box"))
		if rows, _ := got.value["rows"].([]any); got.fail != nil || len(rows) >= a["rows"].(int) {
			return got
		}
		select {
		case <-again.C:
		case <-deadline:
			return got
		}
	}
}

// awaitEngine asks until the daemon's own engine answers: the daemon is ready
// before it.
func (s *server) awaitEngine(t *testing.T) {
	t.Helper()
	deadline := time.After(time.Minute)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		resp, err := s.unix.Get("http://box" + operations["schema"])
		must(t, err)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("the log engine does not answer: %s", resp.Status)
		}
	}
}

// onLogsCommandLine adds the verbs of the log queries to those of the command
// line, which has no name for schema.
func onLogsCommandLine(verbs map[string]func(*running, object) result) map[string]func(*running, object) result {
	filter := func(r *running, operation string, a object) []string {
		return flags(between(r, operation, a), "from", "--from", "to", "--to", "service", "--service", "severity", "--severity",
			"text", "--text", "traceId", "--trace", "limit", "-n", "bucketSeconds", "--bucket")
	}
	maps.Copy(verbs, map[string]func(*running, object) result{
		"query": func(r *running, a object) result {
			return r.ask(append([]string{"logs", "query", text(a["sql"], "")}, pairs(a, "parameters", "-p")...)...)
		},
		"search": func(r *running, a object) result {
			return r.ask(append([]string{"logs", "search"}, filter(r, "search", a)...)...)
		},
		"aggregate": func(r *running, a object) result {
			args := append([]string{"logs", "count"}, filter(r, "aggregate", a)...)
			if by, ok := a["groupBy"].([]any); ok {
				args = append(args, "--by", strings.Trim(strings.ReplaceAll(fmt.Sprint(by), " ", ","), "[]"))
			}
			return r.ask(args...)
		},
		"log": logged,
	})
	return verbs
}
