package test

import (
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNotice wants NOTICE to name the modules that what is installed contains,
// all of them and no other.
func TestNotice(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}",
		"../capi", "../cmd/sandbox", "../cmd/sandbox-shim", "../cmd/sandbox-init", "../cmd/sandbox-pod",
		"../cmd/sandbox-logs", "../logs/clickhouse").Output()
	if err != nil {
		t.Fatal("go list: ", err)
	}
	linked := map[string]bool{}
	for module := range strings.FieldsSeq(string(out)) {
		linked[module] = true
	}
	delete(linked, module(t))
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z0-9.]+/\S+) +\S`).FindAllStringSubmatch(read(t, "NOTICE"), -1) {
		named[m[1]] = true
	}
	if regexp.MustCompile(`(?m)^(<{7}|={7}|>{7})`).MatchString(read(t, "NOTICE")) {
		t.Error("NOTICE has the marks of a merge that was not finished")
	}
	for _, module := range slices.Sorted(maps.Keys(linked)) {
		if !named[module] {
			t.Errorf("NOTICE does not name %s", module)
		}
	}
	for module := range named {
		if !linked[module] {
			t.Errorf("NOTICE names %s, which is not linked", module)
		}
	}
}
