package fault_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sandbox/core/fault"
	"sandbox/test/members"
)

var update = flag.Bool("update", false, "write docs/ERRORS.md anew")

func TestRows(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, row := range fault.Table() {
		if seen[row.Code] {
			t.Errorf("code %s stands twice", row.Code)
		}
		seen[row.Code] = true
		members.Equal(t, "the row of "+row.Code, members.Of{
			"a code": {row.Code != "", true}, "a class": {row.Class != "", true}, "a number for C": {row.C > 0, true},
			"an HTTP status of failures": {row.HTTP >= 400 && row.HTTP <= 599, true}, "an exit status": {row.Exit > 0, true},
		})
	}
}

// TestDocument compares docs/ERRORS.md with the table. With -update it writes
// the file instead.
func TestDocument(t *testing.T) {
	t.Parallel()
	const path = "../../docs/ERRORS.md"
	var b strings.Builder
	b.WriteString("# Failures\n\nWritten by `make docs` from the table in `core/fault/table.go`.\n\n" +
		"A code is never renamed and a number never changed. Treat one that you don't know as `internal`.\n\n" +
		"| code | C | HTTP | exit | means | title of a log query's problem |\n|---|---|---|---|---|---|\n")
	for _, row := range fault.Table() {
		fmt.Fprintf(&b, "| `%s` | %d | %d | %d | %s | %s |\n", row.Code, row.C, row.HTTP, row.Exit, row.Class, row.Title)
	}
	b.WriteString("\nThe exit code of `sandbox exec` and `sandbox run` is the command's own: 128 and the number of the signal\n" +
		"after death by one, 127 for a command that is not there, 126 for one that can't be executed; our own failure there is 125.\n")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != b.String() {
		t.Errorf("docs/ERRORS.md is not what the table says (%v): run make docs", err)
	}
}

// TestHeader compares the enumerators of the C header with the table.
func TestHeader(t *testing.T) {
	t.Parallel()
	header, err := os.ReadFile("../../include/sandbox.h")
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[int]string{}
	codes, _, _ := strings.Cut(string(header), "} SandboxErrorCode;") // other enumerations follow
	for _, m := range regexp.MustCompile(`\bSANDBOX_([A-Z_]+)\s*=\s*(\d+)`).FindAllStringSubmatch(codes, -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil || numbers[n] != "" {
			t.Errorf("SANDBOX_%s = %s: used by SANDBOX_%s too (%v)", m[1], m[2], numbers[n], err)
		}
		numbers[n] = m[1]
	}
	if numbers[0] != "OK" {
		t.Errorf("0 is SANDBOX_%s", numbers[0])
	}
	delete(numbers, 0)
	for _, row := range fault.Table() {
		if numbers[row.C] == "" {
			t.Errorf("%s: the header has no code %d", row.Code, row.C)
		}
	}
	for n, name := range numbers {
		if !named(n, name) {
			t.Errorf("SANDBOX_%s = %d: no row of the table has that number and a code like it", name, n)
		}
	}
}

// named tells whether a row with the number n has a code that begins like the
// name of the enumerator: image_error begins like SANDBOX_IMAGE. Network
// failures have codes that say more than their enumerator.
func named(n int, name string) bool {
	for _, row := range fault.Table() {
		if row.C == n && (name == "NETWORK" || strings.HasPrefix(row.Code+"_", strings.ToLower(name)+"_")) {
			return true
		}
	}
	return false
}
