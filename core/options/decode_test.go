package options_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// full is a document with every member. The tables below replace parts of it.
const full = `{
	"rootfs": {"Image": "debian:12"}, "cpus": 1, "memory_mib": 64, "disk_size_gb": 3, "working_dir": "/srv",
	"env": [["A", "1"], ["B", "x=y"], ["A", "2"]],
	"volumes": [{"host_path": "/srv/data", "guest_path": "/data", "read_only": true}, {"host_path": "/a/", "guest_path": "/b"}, {"claim": "a-1.b", "guest_path": "/c"}],
	"network": "None",
	"ports": [{"host_port": 8080, "guest_port": 80, "protocol": "Udp", "host_ip": "::1"}, {"guest_port": 1}],
	"auto_remove": false
}`

const least = `{"rootfs": {"RootfsPath": "/srv/rootfs"}, "env": [], "volumes": [], "network": "Isolated", "ports": []}`

func TestDecode(t *testing.T) {
	t.Parallel()
	leastBox := options.Defaults()
	leastBox.RootfsPath = "/srv/rootfs"
	withEnv := leastBox
	withEnv.Env = map[string]string{"PATH": "/bin", "EMPTY": ""}
	for name, tt := range map[string]struct {
		doc  string
		want options.Box
	}{
		"full": {full, options.Box{
			Image: "debian:12", CPUs: 1, MemoryMiB: 64, DiskSizeGB: 3, WorkingDir: "/srv",
			Env:     map[string]string{"A": "2", "B": "x=y"},
			Network: options.NetworkNone,
			Volumes: []options.Volume{{HostPath: "/srv/data", GuestPath: "/data", ReadOnly: true}, {HostPath: "/a/", GuestPath: "/b"}, {Claim: "a-1.b", GuestPath: "/c"}},
			Ports:   []options.Port{{HostIP: "::1", HostPort: 8080, GuestPort: 80, Protocol: "Udp"}, {GuestPort: 1, Protocol: "Tcp"}},
		}},
		"least":         {least, leastBox},
		"null is unset": {with("cpus", "null", "memory_mib", "null", "disk_size_gb", "null", "working_dir", "null", "auto_remove", "null"), leastBox},
		"env as a map":  {with("env", `{"PATH": "/bin", "EMPTY": ""}`), withEnv},
		"white space":   {" \r\n\t" + least + "\n", leastBox},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := options.Decode([]byte(tt.doc))
			if err != nil {
				t.Fatal(err)
			}
			if got.Env == nil {
				t.Error("Env is nil")
			}
			if len(got.Env) == 0 {
				got.Env = nil
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	const (
		malformed = fault.Malformed
		invalid   = fault.InvalidArgument
	)
	for name, tt := range map[string]struct {
		doc    string
		kind   fault.Kind
		fields []string // nil: only the message is checked
		says   string
	}{
		"nothing":          {"", malformed, nil, "EOF"},
		"not JSON":         {"cpus: 2", malformed, nil, "invalid character"},
		"truncated":        {full[:100], malformed, nil, "EOF"},
		"null":             {" null", malformed, []string{"the document"}, "must be an object"},
		"a list":           {"[]", malformed, []string{"the document"}, "must be an object"},
		"trailing data":    {least + "{}", malformed, nil, "after top-level value"},
		"byte order mark":  {"\ufeff" + least, malformed, nil, "invalid character"},
		"not UTF-8":        {with("working_dir", "\"/\xff\""), malformed, nil, "UTF-8"},
		"too large":        {least + strings.Repeat(" ", 1<<20), malformed, nil, "1048576"},
		"deep":             {with("env", strings.Repeat("[", 200_000)), malformed, nil, ""},
		"duplicate member": {strings.Replace(least, "{", `{"cpus": 1, "cpus": 2, `, 1), malformed, nil, `duplicate object member name "cpus"`},
		"duplicate in env": {with("env", `{"A": "1", "A": "2"}`), malformed, nil, `duplicate object member name "A"`},
		"empty object": {"{}", malformed, []string{"rootfs", "env", "volumes", "network", "ports"},
			"invalid box options JSON: rootfs is missing; env is missing; volumes is missing; network is missing; ports is missing"},
		"required as null":      {with("env", "null", "ports", "null"), malformed, []string{"env", "ports"}, ""},
		"members of elements":   {with("volumes", "[{}, null]", "ports", `[{"host_port": 1}]`), malformed, []string{"volumes[0].host_path", "volumes[0].guest_path", "volumes[1].host_path", "volumes[1].guest_path", "ports[0].guest_port"}, ""},
		"unknown member":        {with("cpu", "2"), malformed, []string{"cpu"}, "is not a member"},
		"another case":          {with("CPUS", "2"), malformed, []string{"CPUS"}, "is not a member"},
		"unknown in an element": {with("volumes", `[{"host_path": "/a", "guest_path": "/b", "readonly": true}]`), malformed, []string{"volumes[0].readonly"}, "is not a member"},
		"unknown in rootfs":     {with("rootfs", `{"image": "a"}`), malformed, []string{"rootfs.image"}, "is not a member"},
		"text for a number":     {with("cpus", `"2"`), malformed, []string{"cpus"}, "must be an integer"},
		"fraction":              {with("cpus", "1.5"), malformed, []string{"cpus"}, "must be an integer"},
		"beyond 64 bits":        {with("memory_mib", "99999999999999999999"), malformed, []string{"memory_mib"}, "must be an integer"},
		"number for text":       {with("network", "1"), malformed, []string{"network"}, "must be a string"},
		"number for a switch":   {with("auto_remove", "1"), malformed, []string{"auto_remove"}, "must be true or false"},
		"object for a list":     {with("volumes", "{}"), malformed, []string{"volumes"}, "must be a list"},
		"text for rootfs":       {with("rootfs", `"debian"`), malformed, []string{"rootfs"}, "must be an object"},
		"env of one":            {with("env", `[["A"]]`), malformed, []string{"env[0]"}, "[key, value]"},
		"env of three":          {with("env", `[["A", "B", "C"]]`), malformed, []string{"env[0]"}, "[key, value]"},
		"env of null":           {with("env", `[["A", null]]`), malformed, []string{"env[0][1]"}, "must be a string"},
		"env map of null":       {with("env", `{"A": null}`), malformed, []string{"env.A"}, "must be a string"},
		"env as text":           {with("env", `"A=1"`), malformed, []string{"env"}, "must be a list"},
		"env of numbers":        {with("env", `[["A", 1]]`), malformed, []string{"env[0][1]"}, "must be a string"},

		"several at once": {with("cpu", "1", "cpus", `"2"`, "memory_mib", "1", "rootfs", `{"Image": 1}`, "env", "null"), malformed, []string{"cpu", "cpus", "rootfs.Image", "env", "memory_mib"},
			"invalid box options JSON: cpu is not a member of this document; cpus must be an integer; rootfs.Image must be a string; env is missing; memory_mib is 1"},

		"no rootfs":            {with("rootfs", "{}"), invalid, []string{"rootfs"}, "exactly one"},
		"two rootfs":           {with("rootfs", `{"Image": "a", "RootfsPath": "/a"}`), invalid, []string{"rootfs"}, "exactly one"},
		"relative rootfs":      {with("rootfs", `{"RootfsPath": "a"}`), invalid, []string{"rootfs.RootfsPath"}, "absolute"},
		"the host as rootfs":   {with("rootfs", `{"RootfsPath": "//"}`), invalid, []string{"rootfs.RootfsPath"}, "root directory"},
		"numbers out of range": {with("cpus", "0", "memory_mib", "15", "disk_size_gb", "65537"), invalid, []string{"cpus", "memory_mib", "disk_size_gb"}, "cpus is 0 and must be at least 1; memory_mib is 15 and must be at least 16"},
		"disk of zero":         {with("disk_size_gb", "0"), invalid, []string{"disk_size_gb"}, "at least 1"},
		"relative working_dir": {with("working_dir", `"srv"`), invalid, []string{"working_dir"}, "absolute"},
		"dots in working_dir":  {with("working_dir", `"/srv/../etc"`), invalid, []string{"working_dir"}, ".."},
		"NUL":                  {with("working_dir", `"/\u0000"`), invalid, []string{"working_dir"}, "NUL"},
		"names of variables":   {with("env", `[["", "1"]]`), invalid, []string{"env"}, "can't be the name of a variable"},
		"equals in a name":     {with("env", `[["A=B", "1"]]`), invalid, []string{"env"}, "can't be the name of a variable"},
		"NUL in a value":       {with("env", `[["A", "\u0000"]]`), invalid, []string{"env.A"}, "NUL"},
		"too much environment": {with("env", fmt.Sprintf(`[["A", %q]]`, strings.Repeat("x", options.MaxEnvBytes))), invalid, []string{"env"}, "bytes"},
		"too many variables":   {with("env", "["+list(1001, `["A%d", ""]`)+"]"), invalid, []string{"env"}, "may have at most 1000"},
		"too many volumes":     {with("volumes", "["+list(65, `{"host_path": "/a", "guest_path": "/b%d"}`)+"]"), invalid, []string{"volumes"}, "may have at most 64"},
		"too many ports":       {with("ports", "["+list(257, `{"guest_port": %d}`, 1)+"]"), invalid, []string{"ports"}, "may have at most 256"},
		"volume sources": {with("volumes", `[{"claim": "a", "host_path": "/a", "guest_path": "/a"}, {"claim": "", "guest_path": "/b"}, {"host_path": "", "guest_path": "/c"},
			{"claim": "A", "guest_path": "/d"}, {"claim": "a/b", "guest_path": "/e"}, {"claim": "a-.b", "guest_path": "/f"}, {"claim": "`+strings.Repeat("a", 254)+`", "guest_path": "/g"},
			{"claim": "a-1.b", "guest_path": "/h"}]`), invalid, []string{"volumes[0].host_path", "volumes[1].host_path", "volumes[2].host_path",
			"volumes[3].claim", "volumes[4].claim", "volumes[5].claim", "volumes[6].claim"}, ""},
		"volume paths": {with("volumes", `[{"host_path": "a", "guest_path": ""}, {"host_path": "/", "guest_path": "/"}]`), invalid, []string{"volumes[0].host_path", "volumes[0].guest_path", "volumes[1].host_path", "volumes[1].guest_path"}, ""},
		"volume places": {with("volumes", `[{"host_path": "/a", "guest_path": "/proc/x"}, {"host_path": "/a", "guest_path": "//dev/"},
			{"host_path": "/a", "guest_path": "/x"}, {"host_path": "/a", "guest_path": "/x/"}, {"host_path": "/a", "guest_path": "/device"}]`),
			invalid, []string{"volumes[0].guest_path", "volumes[1].guest_path", "volumes[3].guest_path"}, ""},
		"port numbers": {with("ports", `[{"host_port": -1, "guest_port": 0}, {"host_port": 65536, "guest_port": 65536}]`), invalid, []string{"ports[0].host_port", "ports[0].guest_port", "ports[1].host_port", "ports[1].guest_port"}, ""},
		"port words":   {with("ports", `[{"guest_port": 1, "protocol": "tcp", "host_ip": "localhost"}]`), invalid, []string{"ports[0].host_ip", "ports[0].protocol"}, "Tcp, Udp"},
		"network":      {with("network", `"isolated"`), invalid, []string{"network"}, "Isolated, None"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := options.Decode([]byte(tt.doc))
			f := fault.Of(err)
			if f == nil {
				t.Fatal("accepted")
			}
			if f.Kind != tt.kind || !strings.HasPrefix(f.Message, "invalid box options JSON: ") || !strings.Contains(f.Message, tt.says) {
				t.Errorf("got %v: %.300s\nwant %v: invalid box options JSON: ...%s", f.Kind, f.Message, tt.kind, tt.says)
			}
			var fields []string
			for _, field := range f.Fields {
				fields = append(fields, field.Field)
			}
			if tt.fields != nil && !slices.Equal(fields, tt.fields) {
				t.Errorf("fields %q, want %q", fields, tt.fields)
			}
		})
	}
}

// with returns the smallest valid document, with members set or added.
func with(members ...string) string {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal([]byte(least), &doc); err != nil {
		panic(err)
	}
	for pair := range slices.Chunk(members, 2) {
		doc[pair[0]] = json.RawMessage(pair[1])
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		parts = append(parts, fmt.Sprintf("%q: %s", name, doc[name]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// list returns a list of n elements, each made from its index.
func list(n int, format string, first ...int) string {
	var parts []string
	for i := range n {
		if len(first) > 0 {
			i += first[0]
		}
		parts = append(parts, fmt.Sprintf(format, i))
	}
	return strings.Join(parts, ", ")
}

func TestRecordRoundTrip(t *testing.T) {
	t.Parallel()
	want, err := options.Decode([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want.Name, want.User, want.Labels = "web", "1000:1000", map[string]string{"k": "v"}
	doc, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got options.Box
	if err := json.Unmarshal(doc, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestDecodeArgs(t *testing.T) {
	t.Parallel()
	got, err := options.DecodeArgs([]byte(`["-c", "", "\u0041"]`))
	if want := []string{"-c", "", "A"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, doc := range []string{"", `"a"`, `[1]`, `[null]`, `["a"`, `["a"]x`, `{}`, "[\"\xff\"]"} {
		if _, err := options.DecodeArgs([]byte(doc)); !fault.Is(err, fault.Malformed) {
			t.Errorf("%s: got %v, want malformed", doc, err)
		}
	}
}

func TestDecodeEnv(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{`[["A", "1"], ["B", ""]]`, `{"A": "1", "B": ""}`} {
		got, err := options.DecodeEnv([]byte(doc))
		if want := map[string]string{"A": "1", "B": ""}; err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", doc, got, err, want)
		}
	}
	for _, doc := range []string{"", `"A=1"`, `["A=1"]`, `[["A"]]`, `{"A": 1}`} {
		if _, err := options.DecodeEnv([]byte(doc)); !fault.Is(err, fault.Malformed) {
			t.Errorf("%s: got %v, want malformed", doc, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte(least))
	f.Add([]byte(`{"rootfs": {"Image": "\u0000"}, "env": {"=": "\ud800"}, "volumes": [null], "ports": [{}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		b, err := options.Decode(doc)
		if err != nil {
			if f := fault.Of(err); f.Kind.Row().C != 5 || !strings.HasPrefix(f.Message, "invalid box options JSON: ") {
				t.Errorf("%v: %s", f.Kind, f.Message)
			}
			return
		}
		if err := b.Check(); err != nil {
			t.Errorf("Decode gave a box that Check refuses: %v", err)
		}
		if !json.Valid(doc) {
			t.Error("Decode took what is not JSON")
		}
	})
}
