package sql_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// An entry is a statement of a corpus. A file of one has blocks such as
//
//	== name
//	=> part of the message that is wanted
//	SELECT 1
//
// in which the second line may be missing, and a statement in double quotes
// is one in Go's syntax.
type entry struct {
	name, want, sql string
}

func corpus(t testing.TB, dir string) []entry {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", dir, "*.txt"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no corpus %s: %v", dir, err)
	}
	var all []entry
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		class := strings.TrimSuffix(filepath.Base(path), ".txt")
		for _, block := range strings.Split("\n"+string(text), "\n== ")[1:] {
			all = append(all, parseEntry(t, class, block))
		}
	}
	return all
}

func parseEntry(t testing.TB, class, block string) entry {
	t.Helper()
	name, sql, _ := strings.Cut(block, "\n")
	e := entry{name: class + "/" + name, sql: strings.TrimRight(sql, "\n")}
	if rest, ok := strings.CutPrefix(e.sql, "=> "); ok {
		e.want, e.sql, _ = strings.Cut(rest, "\n")
	}
	if strings.HasPrefix(e.sql, `"`) {
		var err error
		if e.sql, err = strconv.Unquote(e.sql); err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
	}
	return e
}
