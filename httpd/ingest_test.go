package httpd_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/log"
	sdk "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
	"google.golang.org/protobuf/encoding/protowire"

	"sandbox/api"
	"sandbox/logs/ingest"
)

// found returns the rows of a service, newest first.
func (s *service) found(name string) []map[string]any {
	s.t.Helper()
	now := time.Now().UTC()
	doc := fmt.Sprintf(`{"from":%q,"to":%q,"service":%q}`, now.Add(-24*time.Hour).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339), name)
	a := s.ask("POST", "/v1/observability/logs/search", doc).want(s.t, 200, "")
	var rows []map[string]any
	for _, r := range a.json["rows"].([]any) {
		rows = append(rows, r.(map[string]any))
	}
	return rows
}

// TestExporter sends logs with OpenTelemetry's own SDK.
func TestExporter(t *testing.T) {
	t.Parallel()
	s, _ := withEngine(t)
	for name, option := range map[string]otlploghttp.Option{"plain": otlploghttp.WithCompression(otlploghttp.NoCompression), "packed": otlploghttp.WithCompression(otlploghttp.GzipCompression)} {
		exporter, err := otlploghttp.New(t.Context(), option, otlploghttp.WithEndpointURL(s.url+"/v1/logs"),
			otlploghttp.WithHeaders(map[string]string{"Authorization": "Bearer " + s.onlyKey(api.MayWriteLogs)}), otlploghttp.WithHTTPClient(s.client))
		must(t, err)
		provider := sdk.NewLoggerProvider(sdk.WithProcessor(sdk.NewBatchProcessor(exporter)),
			sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", name), attribute.StringSlice("list", []string{"a", "b"}))))
		logger := provider.Logger("scope", log.WithInstrumentationVersion("1.2"))
		for i := range 1000 {
			var r log.Record
			r.SetTimestamp(time.Now().Add(time.Duration(i-1000) * time.Second))
			r.SetSeverity(log.SeverityWarn)
			r.SetSeverityText("warning")
			r.SetBody(attribute.StringValue(fmt.Sprint("message ", i)))
			r.SetEventName("event")
			r.AddAttributes(attribute.Int("i", i), attribute.Bool("odd", i%2 == 1), attribute.Float64("f", 0.5), attribute.Map("m", attribute.String("k", "<v>")))
			logger.Emit(context.Background(), r)
		}
		must(t, provider.Shutdown(t.Context()))
		rows := s.found(name)
		if len(rows) != 100 {
			t.Fatalf("%s: got %d rows", name, len(rows))
		}
		row := rows[0]
		want := map[string]any{"Body": "message 999", "SeverityText": "warning", "SeverityNumber": 13.0, "ScopeName": "scope", "ScopeVersion": "1.2", "EventName": "event",
			"ResourceAttributes": map[string]any{"service.name": name, "list": `["a","b"]`}, "LogAttributes": map[string]any{"i": "999", "odd": "true", "f": "0.5", "m": `{"k":"<v>"}`}}
		for column, value := range want {
			if fmt.Sprint(row[column]) != fmt.Sprint(value) {
				t.Errorf("%s: %s is %v, want %v", name, column, row[column], value)
			}
		}
	}
}

// export is a request with a number of records.
func export(t *testing.T, service string, records int) plog.Logs {
	t.Helper()
	l := plog.NewLogs()
	r := l.ResourceLogs().AppendEmpty()
	r.Resource().Attributes().PutStr("service.name", service)
	list := r.ScopeLogs().AppendEmpty().LogRecords()
	for i := range records {
		record := list.AppendEmpty()
		record.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		record.Body().SetStr(fmt.Sprint("record ", i))
	}
	return l
}

func packed(t *testing.T, text []byte) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(text)
	must(t, err)
	must(t, w.Close())
	return b.String()
}

func deflated(t *testing.T, text []byte) string {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, err := w.Write(text)
	must(t, err)
	must(t, w.Close())
	return b.String()
}

// TestIngestAccess wants who is not let in to be told so in the protocol's words.
func TestIngestAccess(t *testing.T) {
	t.Parallel()
	s := start(t)
	for name, tt := range map[string]struct {
		key    string
		status int
		words  string
	}{"no key": {"sbx_nothing", 401, "key"}, "a key for queries": {s.onlyKey(api.MayQueryLogs), 403, "observability.logs.write"}} {
		a := s.ask("POST", "/v1/logs", "{}", bearer(tt.key))
		var status map[string]string
		if err := json.Unmarshal([]byte(a.text), &status); err != nil || a.status != tt.status || len(status) != 1 || !strings.Contains(status["message"], tt.words) {
			t.Errorf("%s: got %d %s", name, a.status, a.text)
		}
		a = s.ask("POST", "/v1/logs", "", bearer(tt.key), header("Content-Type", "application/x-protobuf"))
		number, kind, n := protowire.ConsumeTag([]byte(a.text))
		words, _ := protowire.ConsumeString([]byte(a.text)[max(n, 0):])
		if a.status != tt.status || a.header.Get("Content-Type") != "application/x-protobuf" || number != 2 || kind != protowire.BytesType || !strings.Contains(words, tt.words) {
			t.Errorf("%s: got %d %q", name, a.status, a.text)
		}
	}
}

func TestIngest(t *testing.T) {
	t.Parallel()
	s, _ := withEngine(t)
	l := export(t, "by hand", 3)
	record := l.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(1)
	record.SetTraceID([16]byte{0xab, 15: 1})
	record.SetSpanID([8]byte{1, 7: 0xff})
	record.SetFlags(1)
	l.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(2).SetTimestamp(1 << 63) // too late for the table
	binary, err := (&plog.ProtoMarshaler{}).MarshalLogs(l)
	must(t, err)
	text, err := (&plog.JSONMarshaler{}).MarshalLogs(l)
	must(t, err)
	proto, gz := header("Content-Type", "application/x-protobuf"), header("Content-Encoding", "gzip")
	for name, tt := range map[string]struct {
		body   string
		change []func(*http.Request)
	}{
		"protobuf": {string(binary), []func(*http.Request){proto}}, "protobuf, packed": {packed(t, binary), []func(*http.Request){proto, gz}},
		"protobuf, deflated": {deflated(t, binary), []func(*http.Request){proto, header("Content-Encoding", "deflate")}},
		"JSON":               {string(text), nil}, "JSON, packed": {packed(t, text), []func(*http.Request){gz}},
	} {
		a := s.ask("POST", "/v1/logs", tt.body, tt.change...).want(t, 200, "")
		if strings.HasPrefix(name, "JSON") {
			if !strings.Contains(a.text, `{"partialSuccess":{"rejectedLogRecords":"1","errorMessage":`) {
				t.Errorf("%s: got %s", name, a.text)
			}
			continue
		}
		inner, _ := protowire.ConsumeBytes([]byte(a.text)[1:])
		if len(a.text) < 4 || a.text[0] != 1<<3|2 || inner[0] != 1<<3 || inner[1] != 1 || a.header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s: got %q", name, a.text)
		}
	}
	rows := s.found("by hand")
	if len(rows) != 10 || rows[0]["TraceId"] != "ab000000000000000000000000000001" || rows[0]["SpanId"] != "01000000000000ff" || rows[0]["TraceFlags"] != 1.0 {
		t.Errorf("got %d rows: %v", len(rows), rows[0])
	}
	if a := s.ask("POST", "/v1/logs", "", proto).want(t, 200, ""); a.text != "" { // an empty request is one
		t.Errorf("got %q", a.text)
	}
	s.ask("POST", "/v1/logs", "{}").want(t, 200, "")
}

// TestBadIngest sends what can't be stored.
func TestBadIngest(t *testing.T) {
	t.Parallel()
	s, _ := withEngine(t)
	proto, gz := header("Content-Type", "application/x-protobuf"), header("Content-Encoding", "gzip")
	type change = []func(*http.Request)
	deep := []byte{}
	for range 5000 { // a list in a list in a list
		deep = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), protowire.AppendBytes(protowire.AppendTag(nil, 5, protowire.BytesType), deep))
	}
	for _, number := range []protowire.Number{5, 5, 2, 2, 1} { // a list in a body in a record in a scope in a resource
		deep = protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), deep)
	}
	for name, tt := range map[string]struct {
		body   string
		change change
		status int
	}{
		"no type":           {"{}", change{func(r *http.Request) { r.Header.Del("Content-Type") }}, 415},
		"another type":      {"{}", change{header("Content-Type", "text/plain")}, 415},
		"another gzip":      {"{}", change{header("Content-Encoding", "br")}, 415},
		"no gzip":           {"{}", change{gz}, 400},
		"no deflate":        {"{}", change{header("Content-Encoding", "deflate")}, 400},
		"cut deflate":       {deflated(t, []byte("{}"))[:5], change{header("Content-Encoding", "deflate")}, 400},
		"cut gzip":          {packed(t, []byte("{}"))[:15], change{gz}, 400},
		"no JSON":           {"{", nil, 400},
		"null":              {"null", nil, 400},
		"another JSON":      {"[1]", nil, 400},
		"deep JSON":         {`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":` + strings.Repeat(`{"arrayValue":{"values":[`, 200_000), nil, 400},
		"no protobuf":       {"\xff\xff\xff", change{proto}, 400},
		"cut protobuf":      {"\x0a\x10\x00", change{proto}, 400},
		"deep protobuf":     {string(deep), change{proto}, 400},
		"too large":         {strings.Repeat(" ", ingest.MaxBody+1), nil, 413},
		"too large, packed": {packed(t, bytes.Repeat([]byte(" "), ingest.MaxBody+1)), change{gz}, 413},
		"too many rows":     {manyRows(t), change{proto, gz}, 413},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.ask("POST", "/v1/logs", tt.body, tt.change...)
			if a.status != tt.status {
				t.Errorf("got %d %.200q, want %d", a.status, a.text, tt.status)
			}
		})
	}
}

// manyRows is a small request whose rows are large: the attributes of a
// resource stand in each.
func manyRows(t *testing.T) string {
	l := export(t, "many", 10_000)
	l.ResourceLogs().At(0).Resource().Attributes().PutStr("large", strings.Repeat("x", 1<<20))
	text, err := (&plog.ProtoMarshaler{}).MarshalLogs(l)
	must(t, err)
	return packed(t, text)
}

// TestIngestWithout asks a server that has nowhere to store logs.
func TestIngestWithout(t *testing.T) {
	t.Parallel()
	s := start(t)
	a := s.ask("POST", "/v1/logs", "{}")
	var status struct{ Message string }
	if err := json.Unmarshal([]byte(a.text), &status); err != nil || a.status != 503 || a.header.Get("Retry-After") == "" || !strings.Contains(status.Message, "clickhouse-write-dsn") {
		t.Errorf("got %d %s", a.status, a.text)
	}
}
