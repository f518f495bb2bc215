package httpd_test

import (
	"fmt"
	"slices"
	"testing"

	"sandbox/api"
)

// TestAllFields wants each 400 and 422 of a document to name all members that are
// wrong, those that the host decides too.
func TestAllFields(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create(`{}`)
	query := s.onlyKey(api.MayQueryLogs)
	for name, tt := range map[string]struct {
		path, doc string
		status    int
		fields    []string
	}{
		"a box, its form": {"/v1/boxes", `{"x":1,"cpus":"2","y":1,"volumes":[{"host_path":1},{}],"memory_mib":1}`, 400,
			[]string{"x", "cpus", "y", "volumes[0].host_path", "volumes[0].guest_path", "volumes[1].host_path", "volumes[1].guest_path", "memory_mib"}},
		"a box, the host": {"/v1/boxes", `{"cpus":100000,"memory_mib":1000000000,"name":"-","volumes":[{"host_path":"/srv/none","guest_path":"/a"},{"host_path":"b","guest_path":"/b"}]}`, 422,
			[]string{"name", "volumes[1].host_path", "cpus", "memory_mib"}},
		"a run":            {"/v1/run", `{"x":1,"tty":1,"cols":-1,"cpus":100000}`, 400, []string{"x", "tty", "image", "cols", "cpus"}},
		"a run, its image": {"/v1/run", `{"image":"default"}`, 422, []string{"cmd"}},
		"an exec": {"/v1/boxes/" + id + "/exec", `{"x":1,"timeout_ms":-1,"env":{"A":1,"B":"b","C":2}}`, 400,
			[]string{"x", "env.A", "env.C", "cmd", "timeout_ms"}},
		"a box, its types": {"/v1/boxes", `{"cpus":"2","memory_mib":[],"env":7,"volumes":"x","ports":[{"guest_port":"a","host_port":{}},7],"labels":[1],"auto_remove":1,"name":1,"image":false,"disk_size_gb":1.5,"network":3,"user":{},"working_dir":0}`, 400,
			[]string{"cpus", "memory_mib", "env", "volumes", "ports[0].guest_port", "ports[0].host_port", "ports[1]", "labels", "auto_remove", "name", "image", "disk_size_gb", "network", "user", "working_dir"}},
		"a box, its lists": {"/v1/boxes", `{"env":[["A",1],["B"],"x",["C",null],["D","d"]],"volumes":[1,{"host_path":"/a","guest_path":"/b","read_only":"x"}],"labels":{"a":1,"b":null,"c":"d"}}`, 400,
			[]string{"env[0][1]", "env[1]", "env[2]", "env[3][1]", "volumes[0]", "volumes[1].read_only", "labels.a", "labels.b"}},
		"a run, its types": {"/v1/run", `{"cmd":7,"image":1,"tty":"x","cpus":"a","env":3,"stdin":[],"labels":5,"timeout_ms":"x"}`, 400,
			[]string{"cmd", "image", "tty", "cpus", "env", "stdin", "labels", "timeout_ms"}},
		"an exec, its types": {"/v1/boxes/" + id + "/exec", `{"cmd":["a",1,null,"b",{}],"env":{"A":1,"B":null},"tty":"x","cols":"a","rows":1.5,"timeout_ms":"x","stdin":5,"stdin_open":1,"user":1,"working_dir":[]}`, 400,
			[]string{"cmd[1]", "cmd[2]", "cmd[4]", "env.A", "env.B", "tty", "cols", "rows", "timeout_ms", "stdin", "stdin_open", "user", "working_dir"}},
		"a key, its types":  {"/v1/keys", `{"name":1,"permissions":"all","environment":[],"expires_at":5}`, 400, []string{"name", "permissions", "environment", "expires_at"}},
		"a pull, its types": {"/v1/images:pull", `{"x":1,"reference":1,"if_missing":"x"}`, 400, []string{"x", "reference", "if_missing"}},
		"a search, its types": {"/v1/observability/logs/search", `{"from":1,"to":[],"limit":"x","severity":3,"text":{},"service":false,"traceId":7}`, 400,
			[]string{"from", "to", "limit", "service", "text", "severity", "traceId"}},
		"an aggregate, its types": {"/v1/observability/logs/aggregate", `{"from":1,"to":[],"groupBy":[1,"service",2],"bucketSeconds":"a","limit":{}}`, 400,
			[]string{"from", "to", "limit", "groupBy[0]", "groupBy[2]", "bucketSeconds"}},
		"a key":  {"/v1/keys", `{"x":1,"permissions":["a",2,"Boxes"],"environment":"/","expires_at":"soon"}`, 400, []string{"x", "permissions[1]", "name", "expires_at", "permissions[0]", "environment"}},
		"a file": {"/v1/boxes/" + id + "/files/download", `{"x":1,"archive":"zip"}`, 400, []string{"x", "path", "archive"}},
		"a search": {"/v1/observability/logs/search", `{"x":1,"y":2,"limit":0,"severity":"loud"}`, 400,
			[]string{"x", "y", "from", "to", "severity", "limit"}},
		"an aggregate": {"/v1/observability/logs/aggregate", `{"x":1,"y":2,"groupBy":["a"],"bucketSeconds":"7"}`, 400,
			[]string{"x", "y", "from", "to", "groupBy", "bucketSeconds"}},
		"a query": {"/v1/observability/query", `{"x":1,"y":2,"parameters":{"1":"a","b":[]}}`, 400, []string{"x", "y", "sql", "parameters.1", "parameters.b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := s.key
			if tt.path[:min(len(tt.path), 17)] == "/v1/observability" {
				key = query
			}
			a := s.ask("POST", tt.path, tt.doc, bearer(key))
			told := a.json
			if e, ok := a.json["error"].(map[string]any); ok {
				told = e
			}
			var fields []string
			list, _ := told["fields"].([]any)
			for _, f := range list {
				fields = append(fields, fmt.Sprint(f.(map[string]any)["field"]))
			}
			if a.status != tt.status || !slices.Equal(fields, tt.fields) {
				t.Errorf("got %d with %q: %s\nwant %d with %q", a.status, fields, a.text, tt.status, tt.fields)
			}
		})
	}
}

// TestNull wants null to be as good as nothing for each member that may be left out.
func TestNull(t *testing.T) {
	t.Parallel()
	s := start(t)
	box := "/v1/boxes/" + s.create(`{"image":"default"}`)
	for name, tt := range map[string]struct {
		path, doc string
		status    int
	}{
		"a snapshot":  {box + ":snapshot", `{"name":null}`, 501}, // which this engine has not
		"clones":      {box + ":clone", `{"n":null,"name_prefix":null,"snapshot":null,"options":null}`, 501},
		"a download":  {box + "/files/download", `{"path":"/none","archive":null,"user":null}`, 404},
		"a directory": {box + "/files:mkdir", `{"path":"/tmp/made","mode":null,"user":null}`, 200},
		"a move":      {box + "/files:move", `{"from":"/none","to":"/other","user":null}`, 404},
		"code":        {box + "/code", `{"code":"1","language":null,"context":null,"env":null,"timeout_ms":null}`, 200},
		"a context":   {box + "/contexts", `{"language":null,"working_dir":null,"user":null,"env":null}`, 201},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if a := s.ask("POST", tt.path, tt.doc); a.status != tt.status {
				t.Errorf("got %d, want %d: %s", a.status, tt.status, a.text)
			}
		})
	}
}
