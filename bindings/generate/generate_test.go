package main

import (
	"bytes"
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain tells go/build where Go is: a test that is built with -trimpath does not know.
func TestMain(m *testing.M) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ask go where it is:", err)
		os.Exit(2)
	}
	build.Default.GOROOT = strings.TrimSpace(string(root))
	os.Exit(m.Run())
}

func TestGenerated(t *testing.T) {
	t.Parallel()
	const top = "../.."
	model, err := Read(filepath.Join(top, "api"))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outputs {
		want, err := o.write(model)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(top, o.path))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the tables say: run 'make docs'", o.path)
		}
	}
}

// TestRead looks at one of each: what the languages build on.
func TestRead(t *testing.T) {
	t.Parallel()
	model, err := Read("../../api")
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]string{} // the first of each set
	for _, w := range model.Words {
		words[w.Name] = w.Values[0].Value
	}
	for name, first := range map[string]string{
		"BoxStatus": "created", "ExecStatus": "running", "Reason": "exited", "ImageStage": "fetch", "Permission": "Boxes",
		"PrincipalType": "service_account", "Stream": "stdout", "Encoding": "utf-8", "PullEvent": "progress",
	} {
		if words[name] != first {
			t.Errorf("the first word of %s is %q, want %q", name, words[name], first)
		}
	}
	members := map[string]Member{}
	for _, d := range model.Documents {
		for _, m := range d.Members {
			members[d.Name+"."+m.Name] = m
		}
	}
	list, text := Type{Kind: "document", Name: "Volume"}, Type{Kind: "string"}
	for name, want := range map[string]Member{
		"Box.id":                 {Type: text},
		"Box.name":               {Type: text, Nullable: true},
		"Box.status":             {Type: Type{Kind: "words", Name: "BoxStatus"}},
		"Box.volumes":            {Type: Type{Kind: "list", Of: &list}},
		"Box.env":                {Type: Type{Kind: "map", Of: &text}, Optional: true, Doc: "nil in listings"},
		"Box.started_at":         {Type: Type{Kind: "time"}, Nullable: true},
		"Box.error":              {Type: Type{Kind: "document", Name: "Failure"}, Nullable: true},
		"Exec.duration_ms":       {Type: Type{Kind: "int"}, Nullable: true},
		"Failure.code":           {Type: text},
		"Image.size":             {Type: Type{Kind: "int"}, Doc: "bytes of its layers as plain tars"},
		"RunResult.reason":       {Type: Type{Kind: "words", Name: "Reason"}, Nullable: true},
		"CodeResult.json":        {Type: Type{Kind: "json"}, Optional: true},
		"Info.features":          {Type: Type{Kind: "map", Of: &Type{Kind: "bool"}}},
		"BoxMetrics.cpu_percent": {Type: Type{Kind: "float"}, Nullable: true, Doc: "mean since the start; 100 is one CPU"},
	} {
		got := members[name]
		if got.Name = ""; !same(got, want) {
			t.Errorf("%s is %+v, want %+v", name, got, want)
		}
	}
	if c := model.Classes; len(c) == 0 || c[0].Name != "INTERNAL" || c[len(c)-1].C != 36 {
		t.Errorf("the classes are %+v", c)
	}
	if len(model.Failures) == 0 || model.Failures[0].Code != "internal" || model.Failures[0].C != 1 {
		t.Errorf("the failures begin with %+v", model.Failures[:1])
	}
}

func same(a, b Member) bool {
	if (a.Type.Of == nil) != (b.Type.Of == nil) || a.Type.Of != nil && *a.Type.Of != *b.Type.Of {
		return false
	}
	a.Type.Of, b.Type.Of = nil, nil
	return a == b
}
