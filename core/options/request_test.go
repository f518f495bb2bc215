package options_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"sandbox/core/fault"
	"sandbox/core/options"
)

func restDefaults(change func(*options.Box)) options.Box {
	b := options.Defaults()
	b.AutoRemove = false
	change(&b)
	return b
}

func TestDecodeCreate(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]options.Box{
		`{}`: restDefaults(func(b *options.Box) { b.Image = "default" }),
		`{"image": null, "rootfs_path": null, "labels": null, "ports": null}`: restDefaults(func(b *options.Box) { b.Image = "default" }),
		`{"rootfs_path": "/srv/r"}`: restDefaults(func(b *options.Box) { b.RootfsPath = "/srv/r" }),
		`{"image": "debian:12", "name": "web", "cpus": 1, "memory_mib": 64, "disk_size_gb": 3, "working_dir": "/srv", "user": "nobody",
		  "env": [["A", "1"]], "labels": {"k": "v"}, "network": "None", "auto_remove": true,
		  "volumes": [{"host_path": "/a", "guest_path": "/b"}], "ports": [{"guest_port": 80}]}`: {
			Image: "debian:12", Name: "web", CPUs: 1, MemoryMiB: 64, DiskSizeGB: 3, WorkingDir: "/srv", User: "nobody",
			Env: map[string]string{"A": "1"}, Labels: map[string]string{"k": "v"}, Network: "None", AutoRemove: true,
			Volumes: []options.Volume{{HostPath: "/a", GuestPath: "/b"}}, Ports: []options.Port{{GuestPort: 80, Protocol: "Tcp"}},
		},
	} {
		got, err := options.DecodeCreate([]byte(doc))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v, %v\nwant %+v", doc, got, err, want)
		}
	}
}

func TestDecodeExec(t *testing.T) {
	t.Parallel()
	echo := []string{"echo", "hi"}
	for doc, want := range map[string]options.ExecRequest{
		`{"cmd": ["echo", "hi"]}`:                     {Exec: options.Exec{Cmd: echo}},
		`{"cmd": "echo hi | wc"}`:                     {Exec: options.Exec{Cmd: []string{"/bin/sh", "-c", "echo hi | wc"}}},
		`{"cmd": ["echo", "hi"], "stdin": "text"}`:    {Exec: options.Exec{Cmd: echo, Stdin: true}, Input: "text"},
		`{"cmd": ["echo", "hi"], "stdin": ""}`:        {Exec: options.Exec{Cmd: echo, Stdin: true}},
		`{"cmd": ["echo", "hi"], "stdin_open": true}`: {Exec: options.Exec{Cmd: echo, Stdin: true}, Open: true},
		`{"cmd": ["echo", "hi"], "env": {"A": "1"}, "working_dir": "/srv", "user": "nobody", "tty": true, "cols": 100, "rows": 50, "timeout_ms": 1500}`: {Exec: options.Exec{
			Cmd: echo, Env: map[string]string{"A": "1"}, WorkingDir: "/srv", User: "nobody", TTY: true, Cols: 100, Rows: 50, Timeout: 1500 * time.Millisecond,
		}},
	} {
		got, err := options.DecodeExec([]byte(doc))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v, %v\nwant %+v", doc, got, err, want)
		}
	}
}

func TestDecodeRun(t *testing.T) {
	t.Parallel()
	b, r, err := options.DecodeRun([]byte(`{"image": "i", "cmd": "ls", "env": {"A": "1"}, "user": "u", "working_dir": "/w", "auto_remove": false, "timeout_ms": 1, "stdin": "x"}`))
	wantBox := restDefaults(func(b *options.Box) {
		b.Image, b.Env, b.User, b.WorkingDir, b.AutoRemove = "i", map[string]string{"A": "1"}, "u", "/w", true
	})
	wantRun := options.ExecRequest{Input: "x", Exec: options.Exec{Cmd: []string{"/bin/sh", "-c", "ls"}, Stdin: true, Timeout: time.Millisecond}}
	if err != nil || !reflect.DeepEqual(b, wantBox) || !reflect.DeepEqual(r, wantRun) {
		t.Errorf("got  %+v, %+v, %v\nwant %+v, %+v", b, r, err, wantBox, wantRun)
	}
}

// TestRunWithoutCommand wants an absent or null cmd to be left for the image, and
// every other one without a command to be refused.
func TestRunWithoutCommand(t *testing.T) {
	t.Parallel()
	for doc, ok := range map[string]bool{
		`{"image": "i"}`: true, `{"image": "i", "cmd": null}`: true,
		`{"image": "i", "cmd": []}`: false, `{"image": "i", "cmd": " "}`: false, `{"image": "i", "cmd": [""]}`: false,
	} {
		_, r, err := options.DecodeRun([]byte(doc))
		if refused := fault.Is(err, fault.InvalidArgument); ok != (err == nil && r.Exec.Cmd == nil) || ok == refused {
			t.Errorf("%s: %q, %v", doc, r.Exec.Cmd, err)
		}
	}
}

func TestCheckImageCommand(t *testing.T) {
	t.Parallel()
	for says, cmd := range map[string][]string{
		"":                                    {"sh", "", "-c"},
		`image "i" has no command of its own`: nil,
		`cmd must be given`:                   {"", "x"},
		"cmd[1] must not contain a NUL byte":  {"sh", "a\x00b"},
		"cmd has 131075 bytes":                {"sh", strings.Repeat("x", options.MaxCmdBytes-1)},
	} {
		err := options.CheckImageCommand("i", cmd)
		if says == "" && err != nil || says != "" && (!fault.Is(err, fault.InvalidArgument) || !strings.Contains(err.Error(), says)) {
			t.Errorf("%.20q: %v, want %q", cmd, err, says)
		}
	}
}

// TestRequestsRefused tests, for each document, the kind of its failure and the
// field that the failure names.
func TestRequestsRefused(t *testing.T) {
	t.Parallel()
	create := func(doc []byte) error { _, err := options.DecodeCreate(doc); return err }
	exec := func(doc []byte) error { _, err := options.DecodeExec(doc); return err }
	run := func(doc []byte) error { _, _, err := options.DecodeRun(doc); return err }
	for doc, tt := range map[string]struct {
		decode func([]byte) error
		kind   fault.Kind
		field  string // "" for none
	}{
		``:                                      {create, fault.Malformed, ""},
		`[]`:                                    {create, fault.Malformed, "the document"},
		`{"nosuch": 1}`:                         {create, fault.Malformed, "nosuch"},
		`{"Image": "x"}`:                        {create, fault.Malformed, "Image"},
		`{"rootfs": {"Image": "x"}}`:            {create, fault.Malformed, "rootfs"},
		`{"cpus": 1, "cpus": 1}`:                {create, fault.Malformed, ""},
		`{"cpus": "1"}`:                         {create, fault.Malformed, "cpus"},
		`{"labels": {"a": null}}`:               {create, fault.Malformed, "labels.a"},
		`{"labels": [["a", "b"]]}`:              {create, fault.Malformed, "labels"},
		`{"ports": [{"host_port": 1}]}`:         {create, fault.Malformed, "ports[0].guest_port"},
		`{"volumes": [{}]}`:                     {create, fault.Malformed, "volumes[0].host_path"},
		`{"cmd": "x"}`:                          {create, fault.Malformed, "cmd"},
		`{"cmd": "x", "rootfs_path": "/srv/r"}`: {run, fault.Malformed, "image"},
		`{"cmd": "x", "image": "a", "rootfs_path": "/b"}`:    {run, fault.Malformed, "rootfs_path"},
		`{"image": "a", "cpus": 0}`:                          {create, fault.InvalidArgument, "cpus"},
		`{"disk_size_gb": 0}`:                                {create, fault.InvalidArgument, "disk_size_gb"},
		`{"image": ""}`:                                      {create, fault.InvalidArgument, "image"},
		`{"rootfs_path": ""}`:                                {create, fault.InvalidArgument, "rootfs_path"},
		`{"rootfs_path": "/"}`:                               {create, fault.InvalidArgument, "rootfs_path"},
		`{"rootfs_path": "relative"}`:                        {create, fault.InvalidArgument, "rootfs_path"},
		`{"image":"a","rootfs_path":"/b"}`:                   {create, fault.InvalidArgument, "image"},
		`{"name": ""}`:                                       {create, fault.InvalidArgument, "name"},
		`{"name": "a:b"}`:                                    {create, fault.InvalidArgument, "name"},
		`{"network": "host"}`:                                {create, fault.InvalidArgument, "network"},
		`{"ports": [{"guest_port": 80, "host_ip": "here"}]}`: {create, fault.InvalidArgument, "ports[0].host_ip"},

		`{}`:                              {exec, fault.Malformed, "cmd"},
		`{"cmd": null}`:                   {exec, fault.Malformed, "cmd"},
		`{"cmd": 1}`:                      {exec, fault.Malformed, "cmd"},
		`{"cmd": [1]}`:                    {exec, fault.Malformed, "cmd[0]"},
		`{"cmd": ["a", null]}`:            {exec, fault.Malformed, "cmd[1]"},
		`{"cmd": []}`:                     {exec, fault.InvalidArgument, "cmd"},
		`{"cmd": " "}`:                    {exec, fault.InvalidArgument, "cmd"},
		`{"cmd": [""]}`:                   {exec, fault.InvalidArgument, "cmd"},
		`{"cmd": "a", "image": "x"}`:      {exec, fault.Malformed, "image"},
		`{"cmd": "a", "stdin": 1}`:        {exec, fault.Malformed, "stdin"},
		`{"cmd": "a", "timeout_ms": 1.5}`: {exec, fault.Malformed, "timeout_ms"},
		`{"cmd": "a", "timeout_ms": -1}`:  {exec, fault.InvalidArgument, "timeout_ms"},
		`{"cmd": "a", "timeout_ms": 9007199254740991}`:   {exec, fault.InvalidArgument, "timeout_ms"},
		`{"cmd": "a", "cols": 65536}`:                    {exec, fault.InvalidArgument, "cols"},
		`{"cmd": "a", "env": {"": "x"}}`:                 {exec, fault.InvalidArgument, "env"},
		`{"cmd": "a", "working_dir": "b"}`:               {exec, fault.InvalidArgument, "working_dir"},
		`{"cmd": "a", "stdin": "x", "stdin_open": true}`: {exec, fault.InvalidArgument, "stdin"},

		`{"cmd": "a"} `: {run, fault.Malformed, "image"},
		`{"image": "a", "cmd": "b", "stdin_open": true}`: {run, fault.InvalidArgument, "stdin_open"},
		`{"image": "a", "cmd": "b", "rows": -1}`:         {run, fault.InvalidArgument, "rows"},
		`{"image": "a", "cmd": "b", "memory_mib": 1}`:    {run, fault.InvalidArgument, "memory_mib"},
	} {
		f := fault.Of(tt.decode([]byte(doc)))
		if f == nil || f.Kind != tt.kind || tt.field != "" && (len(f.Fields) == 0 || f.Fields[0].Field != tt.field) {
			t.Errorf("%s: got %v, want %v of %s", doc, f, tt.kind, tt.field)
		}
	}
}

func TestDocumentSizes(t *testing.T) {
	t.Parallel()
	input := strings.Repeat("x", 2<<20)
	if _, err := options.DecodeExec([]byte(`{"cmd": "cat", "stdin": "` + input + `"}`)); err != nil {
		t.Error("exec: ", err)
	}
	if _, err := options.DecodeCreate([]byte(`{"image": "` + input + `"}`)); !fault.Is(err, fault.Malformed) {
		t.Error("create: ", err)
	}
	if _, err := options.DecodeExec([]byte(`{"cmd": "cat", "stdin": "` + strings.Repeat(input, 8) + `"}`)); !fault.Is(err, fault.Malformed) {
		t.Error("exec of 16 MiB and more: ", err)
	}
}

func TestDecodeBuild(t *testing.T) {
	t.Parallel()
	text := "FROM a\n"
	for doc, want := range map[string]options.Build{
		`{"context": "/src"}`:                        {Context: "/src"},
		`{"context": "/src", "recipe_path": "/r"}`:   {Context: "/src", RecipePath: "/r"},
		`{"recipe": "FROM a\n", "context": null}`:    {Recipe: &text},
		`{"recipe_path": "/r", "timeout_ms": 86400}`: {RecipePath: "/r", Timeout: 86400 * time.Millisecond},
		`{"recipe": "FROM a\n", "name": "b", "target": "c", "args": {"A": "1"}, "no_cache": true, "no_network": true, "cpus": 1, "memory_mib": 64}`: {
			Recipe: &text, Name: "b", Target: "c", Args: map[string]string{"A": "1"}, NoCache: true, NoNetwork: true, CPUs: 1, MemoryMiB: 64,
		},
	} {
		got, err := options.DecodeBuild([]byte(doc))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v, %v\nwant %+v", doc, got, err, want)
		}
	}
	for doc, says := range map[string]string{
		`{}`:                                  "recipe is missing",
		`{"recipe": "", "recipe_path": "/r"}`: "recipe_path",
		`{"context": "/c", "timeout_ms": 0}`:  "timeout_ms",
		`{"context": "/c", "cpus": -1}`:       "cpus",
		`{"context": "/c", "memory_mib": 1}`:  "memory_mib",
		`{"context": "/c", "args": {"A": 1}}`: "args.A",
		`{"context": "/c", "x": 1}`:           "x",
	} {
		if _, err := options.DecodeBuild([]byte(doc)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want something about %s", doc, err, says)
		}
	}
}

func FuzzDecodeRequests(f *testing.F) {
	f.Add(`{"image": "a", "cmd": ["b"], "env": {"A": "1"}, "labels": {"k": "v"}, "ports": [{"guest_port": 1}]}`)
	f.Add(`{"cmd": "b", "stdin": "x", "timeout_ms": 5}`)
	f.Fuzz(func(t *testing.T, doc string) {
		if b, err := options.DecodeCreate([]byte(doc)); err == nil && b.Check() != nil {
			t.Errorf("create took %q, which fails its check: %v", doc, b.Check())
		}
		if r, err := options.DecodeExec([]byte(doc)); err == nil && r.Exec.Check() != nil {
			t.Errorf("exec took %q, which fails its check: %v", doc, r.Exec.Check())
		}
		_, _, _ = options.DecodeRun([]byte(doc))
		_, _ = options.DecodeBuild([]byte(doc))
	})
}
