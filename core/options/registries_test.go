package options_test

import (
	"reflect"
	"strings"
	"testing"

	"sandbox/core/fault"
	"sandbox/core/options"
)

func TestDecodeRegistries(t *testing.T) {
	t.Parallel()
	doc := `["docker.io", {"host":"127.0.0.1:5000","transport":"http","username":"u","password":"p"}, {"host":"[::1]:5000","bearer_token":"t"}]`
	want := []options.Registry{
		{Host: "docker.io", Transport: "https"},
		{Host: "127.0.0.1:5000", Transport: "http", Username: "u", Password: "p"},
		{Host: "[::1]:5000", Transport: "https", BearerToken: "t"},
	}
	if got, err := options.DecodeRegistries([]byte(doc)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, doc := range [][]byte{nil, []byte("[]")} {
		if got, err := options.DecodeRegistries(doc); err != nil || len(got) != 0 {
			t.Errorf("%q: got %v, %v", doc, got, err)
		}
	}
}

func TestDecodeRegistriesRefuses(t *testing.T) {
	t.Parallel()
	cases := []struct{ doc, names string }{
		{``, ""}, {`{}`, "list"}, {`null`, "list"}, {`[`, ""}, {`[] x`, ""}, {`[1]`, ""}, {`[null]`, "host"},
		{`[""]`, "[0].host"}, {`["https://docker.io"]`, "[0].host"}, {`["docker.io/library"]`, "[0].host"}, {`["a b"]`, "[0].host"}, {`["u@h"]`, "[0].host"},
		{`[{"host":"h","port":1}]`, "port"}, {`[{"host":"h","host":"h"}]`, "host"}, {`[{"host":1}]`, "host"},
		{`[{"host":"h","transport":"ftp"}]`, "[0].transport"},
		{`[{"host":"h","password":"p"}]`, "[0].username"},
		{`[{"host":"h","username":"u","bearer_token":"t"}]`, "[0].bearer_token"},
		{`["h",{"host":"h"}]`, "[1].host"},
		{`[{"host":1,"port":1},{"host":"h","transport":"ftp"}]`, "[0].host must be a string; [0].port is not a member of this document; [1].transport is"},
		{`["` + strings.Repeat("a", 2<<20) + `"]`, "bytes"},
	}
	for _, c := range cases {
		_, err := options.DecodeRegistries([]byte(c.doc))
		if !fault.Is(err, fault.Config) || !strings.HasPrefix(err.Error(), "invalid registries JSON: ") || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%.60s: got %v, want a config error that names %q", c.doc, err, c.names)
		}
	}
}
