package openapi

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/options"
	"sandbox/httpd"
)

// TestRoutes wants every route to be an operation, with its permission, and
// every operation to be a route.
func TestRoutes(t *testing.T) {
	t.Parallel()
	d := Load(t)
	var routes, operations []string
	for _, r := range httpd.Routes() {
		if r.Method == "*" { // which the document has no word for
			r.Method = "GET"
		}
		routes = append(routes, fmt.Sprintln(r.Method, r.Pattern, r.Permission, r.Open))
	}
	for _, o := range d.Operations {
		operations = append(operations, fmt.Sprintln(o.Method, o.Pattern, strings.Join(o.Permissions, " "), o.Open))
	}
	for _, line := range difference(routes, operations) {
		t.Errorf("the document lacks, or has otherwise: %s", line)
	}
	for _, line := range difference(operations, routes) {
		t.Errorf("no route: %s", line)
	}
}

func difference(a, b []string) []string {
	return slices.DeleteFunc(slices.Sorted(slices.Values(a)), func(s string) bool { return slices.Contains(b, s) })
}

// TestErrors holds the codes against the table of failures.
func TestErrors(t *testing.T) {
	t.Parallel()
	d := Load(t)
	var all, queries []string // codes of all routes but the log queries, and theirs
	statuses := map[string]int{}
	for i, row := range fault.Table() {
		statuses[row.Code] = row.HTTP
		if fault.Kind(i) < fault.InvalidInterval {
			all = append(all, row.Code)
		}
		if row.Title != "" {
			queries = append(queries, row.Code)
		}
	}
	if got := texts(d.look("/components/schemas/Error/properties/error/properties/code/enum")); !slices.Equal(got, all) {
		t.Errorf("Error has the codes %q, the table %q", got, all)
	}
	if got := texts(d.look("/components/schemas/Problem/properties/code/enum")); !slices.Equal(got, queries) {
		t.Errorf("Problem has the codes %q, the table %q", got, queries)
	}
	for _, o := range d.Operations {
		for status := range object(d.look(o.at + "/responses")) {
			at := d.follow(o.at + pointer("responses", status))
			for _, code := range d.codes(at, "application/json") {
				if !slices.Contains(all, code) || fmt.Sprint(statuses[code]) != status {
					t.Errorf("%s %s: %s is no code of status %s", o.Method, o.Pattern, code, status)
				}
			}
			for _, code := range d.codes(at, problemType) {
				if !slices.Contains(queries, code) || fmt.Sprint(statuses[code]) != status {
					t.Errorf("%s %s: %s is no code of status %s", o.Method, o.Pattern, code, status)
				}
			}
		}
	}
}

// codes returns the codes that a response of a failure may have.
func (d *Document) codes(at, kind string) []string {
	parts, _ := d.look(at + pointer("content", kind, "schema", "allOf")).([]any)
	if len(parts) < 2 {
		return nil
	}
	members := object(object(parts[1])["properties"])
	if kind != problemType {
		members = object(object(members["error"])["properties"])
	}
	code := object(members["code"])
	if one, ok := code["const"].(string); ok {
		return []string{one}
	}
	return texts(code["enum"])
}

func texts(v any) (all []string) {
	list, _ := v.([]any)
	for _, item := range list {
		all = append(all, fmt.Sprint(item))
	}
	return all
}

// TestExamples wants every example to be what its schema says, and every
// schema to be used.
func TestExamples(t *testing.T) {
	t.Parallel()
	d := Load(t)
	examples := 0
	used := map[string]bool{}
	walk(d.root, "", func(at string, v map[string]any) {
		if ref, ok := v["$ref"].(string); ok {
			used[ref] = true
		}
		if v["schema"] == nil {
			return
		}
		shown := map[string]any{}
		if v["example"] != nil {
			shown["example"] = v["example"]
		}
		for name := range object(v["examples"]) {
			shown[name] = object(d.look(d.follow(at + pointer("examples", name))))["value"]
		}
		for name, value := range shown {
			examples++
			doc, _ := json.Marshal(value)
			if err := d.Validate(at+"/schema", doc); err != nil {
				t.Errorf("%s, example %s: %v", at, name, err)
			}
		}
	})
	if examples < 20 {
		t.Errorf("only %d examples", examples)
	}
	spoken := []string{"ClientMessage", "ServerMessage"} // on WebSockets
	for _, group := range []string{"schemas", "responses", "parameters", "examples", "headers"} {
		for name := range object(d.look("/components/" + group)) {
			if !used["#/components/"+group+"/"+name] && !slices.Contains(spoken, name) {
				t.Errorf("nothing uses the %s %s", group, name)
			}
		}
	}
}

// walk visits every object of v, which is at a pointer, but those in examples.
func walk(v any, at string, visit func(at string, v map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(at, v)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name != "value" && name != "example" {
				walk(v[name], at+pointer(name), visit)
			}
		}
	case []any:
		for i, item := range v {
			walk(item, at+pointer(strconv.Itoa(i)), visit)
		}
	}
}

// TestUnchosenPort wants the document to have a box as a list shows it while it is
// being made, when no port of the host was chosen for it yet, and only then.
func TestUnchosenPort(t *testing.T) {
	t.Parallel()
	o, err := options.DecodeCreate([]byte(`{"ports":[{"guest_port":80}]}`))
	if err != nil {
		t.Fatal(err)
	}
	d := Load(t)
	for _, status := range []api.BoxStatus{api.Created, api.Running, api.Paused, api.Stopped, api.Failed} {
		doc, err := json.Marshal(core.Record{ID: ids.Box.New(), Status: status, Options: o}.Summary())
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Validate("/components/schemas/BoxSummary", doc); (err == nil) != (status == api.Created) {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

// TestVersion wants the document to be of the version of the product.
func TestVersion(t *testing.T) {
	t.Parallel()
	if got := Load(t).look("/info/version"); got != core.Version {
		t.Errorf("it is of version %v, the product of %s", got, core.Version)
	}
}

// TestTransport shows that replies are refused that are not as they should be.
func TestTransport(t *testing.T) {
	t.Parallel()
	d := Load(t)
	const id = `"request_id":"2f1b6f0e-6f0a-4a58-9b39-0d6c1c1f9f0e"`
	const ok = `{"name":"a","version":"1","api_version":"v1","limits":{"max_cpus":1,"max_memory_mib":1,"max_disk_size_gb":1,"max_boxes":1},` +
		`"usage":{"boxes":0,"running":0,"cpus":0,"memory_mib":0},"defaults":{"image":"a","cpus":1,"memory_mib":16,"network":"None","auto_remove":false},"features":{}`
	for _, tt := range []struct {
		name, path string
		status     int
		kind, body string
		fine       bool
	}{
		{"as it should be", "/v1/info", 200, "application/json", ok + `}`, true},
		{"unknown member", "/v1/info", 200, "application/json", ok + `,"colour":1}`, false},
		{"missing member", "/v1/info", 200, "application/json", `{"name":"a"}`, false},
		{"another type", "/v1/info", 200, "text/html", ok + `}`, false},
		{"another status", "/v1/info", 418, "application/json", ok + `}`, false},
		{"error", "/v1/info", 503, "application/json", `{"error":{"code":"engine_error","message":"m","type":"server_error",` + id + `}}`, true},
		{"code of another status", "/v1/info", 503, "application/json", `{"error":{"code":"timeout","message":"m","type":"server_error",` + id + `}}`, false},
		{"error with more", "/v1/info", 503, "application/json", `{"error":{"code":"engine_error","message":"m","type":"server_error",` + id + `,"x":1}}`, false},
		{"missing header", "/v1/info", 401, "application/json", `{"error":{"code":"unauthenticated","message":"m","type":"authentication_error",` + id + `}}`, false},
		{"no route", "/v2", 404, "application/json", `{"error":{"code":"not_found","message":"m","type":"not_found_error",` + id + `}}`, true},
		{"no route, no JSON", "/v2", 404, "text/plain", `404`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client := &http.Client{Transport: &Transport{Document: d, Next: tripper(func(r *http.Request) *http.Response {
				header := http.Header{"Content-Type": {tt.kind}, "X-Request-Id": {"2f1b6f0e-6f0a-4a58-9b39-0d6c1c1f9f0e"}}
				return &http.Response{Request: r, StatusCode: tt.status, Header: header, Body: io.NopCloser(strings.NewReader(tt.body))}
			})}}
			resp, err := client.Get("http://box" + tt.path)
			if err == nil {
				resp.Body.Close()
			}
			if (err == nil) != tt.fine {
				t.Errorf("got %v", err)
			}
		})
	}
}

type tripper func(*http.Request) *http.Response

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }
