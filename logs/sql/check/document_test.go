package check

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the lists in docs/logs-sql.md anew")

// TestDocument holds the lists at the end of docs/logs-sql.md to the code;
// -update writes them.
func TestDocument(t *testing.T) {
	t.Parallel()
	const path = "../../../docs/logs-sql.md"
	const mark = "<!-- From here on written by `make docs` from logs/sql/check. -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, got, found := strings.Cut(string(text), mark)
	if !found {
		t.Fatalf("%s has no line %s", path, mark)
	}
	want := lists()
	if *update {
		if err := os.WriteFile(path, []byte(head+mark+want), 0o644); err != nil {
			t.Fatal(err)
		}
		got = want
	}
	if got != want {
		t.Errorf("the lists in %s are not those of the code: run make docs", path)
	}
}

func lists() string {
	var b strings.Builder
	b.WriteString("\n## Functions\n\nA name with a star is taken in any case, the others as they stand.\n")
	for _, g := range functions {
		section(&b, g)
	}
	b.WriteString("\n## Aggregate functions\n\n")
	fmt.Fprintf(&b, "Each may end in combinators, any number of them: %s.\n", strings.Join(backquoted(combinators), ", "))
	for _, g := range aggregates {
		section(&b, g)
	}
	fmt.Fprintf(&b, "\n## Table functions\n\n%s.\n", strings.Join(backquoted(tableFunctions), ", "))
	b.WriteString("\n## Types\n\nIn any case, and in their spellings of several words (`DOUBLE PRECISION`, `INT UNSIGNED`).\n")
	for _, g := range types {
		section(&b, group{g.title, strings.ReplaceAll(g.names, "*", "")})
	}
	return b.String()
}

func section(b *strings.Builder, g group) {
	fmt.Fprintf(b, "\n### %s\n\n%s\n", g.title, strings.Join(backquoted(g.names), ", "))
}

func backquoted(names string) []string {
	all := strings.Fields(names)
	slices.SortFunc(all, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	for i, name := range all {
		all[i] = "`" + name + "`"
	}
	return all
}
