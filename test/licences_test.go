package test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sandbox/packaging/parts"
)

// compatible are the licences under which a part of others may be shipped in a work
// under Apache-2.0. MPL-2.0 is one of files, which are used unchanged (NOTICE says so).
var compatible = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MPL-2.0"}

// marks are words that only a licence's own text has. The first that matches counts.
var marks = []struct{ licence, text string }{
	{"MPL-2.0", "mozilla public license,? version 2\\.0"},
	{"Apache-2.0", "apache license,? version 2\\.0|apache license version 2\\.0"},
	{"MIT-0", "mit no attribution"},
	{"MIT", "permission is hereby granted, free of charge"},
	{"ISC", "permission to use, copy, modify, and/?(or)? distribute"},
	{"BSD-3-Clause", "redistribution and use in source and binary forms(.|\\n)*(endorse or promote|neither the name)"},
	{"BSD-2-Clause", "redistribution and use in source and binary forms"},
}

// licenceOf returns the licence whose text it is, or "" for none that is known.
func licenceOf(text string) string {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	for _, m := range marks {
		if regexp.MustCompile(m.text).MatchString(text) {
			return m.licence
		}
	}
	return ""
}

// TestModuleLicences wants the licence of each linked module to be compatible, and the
// one of its own text to be what NOTICE says.
func TestModuleLicences(t *testing.T) {
	t.Parallel()
	modules, err := parts.Modules("..", read(t, "NOTICE"))
	if err != nil || len(modules) == 0 {
		t.Fatalf("%d modules: %v", len(modules), err)
	}
	for _, m := range modules {
		if len(m.Licences) == 0 {
			t.Errorf("NOTICE has no licence of %s", m.Name)
		}
		for _, licence := range m.Licences {
			if !slices.Contains(compatible, licence) {
				t.Errorf("%s is under %s, which is none of %v", m.Name, licence, compatible)
			}
		}
		texts := 0
		for _, pattern := range []string{"LICEN[CS]E*", "COPYING*", "licen[cs]e*"} {
			files, err := filepath.Glob(filepath.Join(m.Dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil || filepath.Ext(file) == ".docs" { // a directory of licences, and one of what is not linked
					continue
				}
				texts++
				if got := licenceOf(string(text)); !slices.Contains(m.Licences, got) {
					t.Errorf("%s of %s is the text of %q, and NOTICE says %v", filepath.Base(file), m.Name, got, m.Licences)
				}
			}
		}
		if texts == 0 {
			t.Errorf("%s has no text of a licence", m.Name)
		}
	}
}

// TestPackageLicences wants the packages of npm to be compatible: those of the page,
// which NOTICE names, and those that the package for Node.js asks for.
func TestPackageLicences(t *testing.T) {
	t.Parallel()
	for lock, named := range map[string]bool{"console/web/package-lock.json": true, "bindings/node/package-lock.json": false} {
		packages, err := parts.Packages([]byte(read(t, lock)))
		if err != nil || len(packages) == 0 {
			t.Fatalf("%s: %d packages, %v", lock, len(packages), err)
		}
		for _, p := range packages {
			if !slices.ContainsFunc(p.Licences, func(l string) bool { return slices.Contains(compatible, l) }) {
				t.Errorf("%s: %s is under %v, which is none of %v", lock, p.Name, p.Licences, compatible)
			}
			if scope, _, _ := strings.Cut(p.Name, "/"); named && !mentions(t, p.Name) && !mentions(t, scope+"/*") {
				t.Errorf("NOTICE does not name %s, which %s has", p.Name, lock)
			}
		}
	}
}

// TestPythonNeedsNothing: the wheel has no package of others in it and asks for none,
// so that there is no licence to look at.
func TestPythonNeedsNothing(t *testing.T) {
	t.Parallel()
	if regexp.MustCompile(`(?m)^dependencies\b`).MatchString(read(t, "bindings/python/pyproject.toml")) {
		t.Error("the wheel asks for packages: hold their licences to the list, as those of npm")
	}
}

func mentions(t *testing.T, name string) bool {
	return regexp.MustCompile(`(^|[\s,])` + regexp.QuoteMeta(name) + `([\s,.]|$)`).MatchString(read(t, "NOTICE"))
}

// TestUnknownLicence: a text that is no known licence's is found out.
func TestUnknownLicence(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"GNU AFFERO GENERAL PUBLIC LICENSE\nVersion 3": "",
		"You may use this on Sundays.":                 "",
		read(t, "LICENSE"):                             "Apache-2.0",
	} {
		if got := licenceOf(text); got != want {
			t.Errorf("%.40q: got %q, want %q", text, got, want)
		}
	}
}

// schemas is the module that has the schemas of CycloneDX.
const schemas = "github.com/CycloneDX/cyclonedx-go@v0.12.0"

// TestBill holds the bill of materials to its schema, and to the parts themselves.
func TestBill(t *testing.T) {
	t.Parallel()
	text := bill(t)
	if string(bill(t)) != string(text) {
		t.Error("the same sources give another bill")
	}
	c := jsonschema.NewCompiler()
	for name, id := range map[string]string{"spdx.schema.json": "spdx.schema.json", "jsf-0.82.schemax.json": "jsf-0.82.schema.json", "bom-1.6.schema.json": "bom-1.6.schema.json"} {
		f, err := os.Open(filepath.Join(directory(t, schemas), "schema", name))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource("http://cyclonedx.org/schema/"+id, doc); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := c.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(doc); err != nil {
		t.Error(err)
	}
	modules, err := parts.Modules("..", read(t, "NOTICE"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modules {
		if !strings.Contains(string(text), `"pkg:golang/`+m.Name+"@") {
			t.Errorf("the bill lacks %s", m.Name)
		}
	}
}

// bill returns what `make sbom` writes.
func bill(t *testing.T) []byte {
	t.Helper()
	cmd := exec.Command("make", "--silent", "-C", "..", "sbom", "SBOM=/dev/stdout")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("make sbom: %v", err)
	}
	return out
}

// directory returns where the Go command keeps the sources of a module.
func directory(t *testing.T, module string) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = t.TempDir() // none of this project's modules
	out, err := cmd.Output()
	var got struct{ Dir string }
	if err != nil || json.Unmarshal(out, &got) != nil {
		t.Fatalf("go mod download %s: %v, %s", module, err, out)
	}
	return got.Dir
}
