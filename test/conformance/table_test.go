package conformance_test

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
)

var tableFile = flag.String("table", "", "a file that the table of rows and surfaces is written to")

// table is how the cases ended, by row and surface.
type table struct {
	guard sync.Mutex
	cells map[string]map[string]cell
}

// cell is how the cases of a row ended on a surface.
type cell struct{ held, failed int }

func (c cell) String() string {
	switch {
	case c.failed > 0:
		return fmt.Sprintf("FAIL %d/%d", c.failed, c.failed+c.held)
	case c.held > 0:
		return fmt.Sprint(c.held)
	}
	return "-"
}

func (b *table) add(row, surface string, held bool) {
	b.guard.Lock()
	defer b.guard.Unlock()
	if b.cells == nil {
		b.cells = map[string]map[string]cell{}
	}
	if b.cells[row] == nil {
		b.cells[row] = map[string]cell{}
	}
	c := b.cells[row][surface]
	if held {
		c.held++
	} else {
		c.failed++
	}
	b.cells[row][surface] = c
}

// write writes the table, if it is asked for: how many cases hold a row on a
// surface, and how many rows and cases each surface holds.
func (b *table) write(t *testing.T, rows map[string]string) {
	t.Helper()
	if *tableFile == "" {
		return
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "row\t%s\n", strings.Join(surfaceNames, "\t"))
	rowsOf, casesOf := map[string]int{}, map[string]int{}
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprint(w, row)
		for _, surface := range surfaceNames {
			c := b.cells[row][surface]
			fmt.Fprintf(w, "\t%s", c)
			casesOf[surface] += c.held
			if c.held > 0 && c.failed == 0 {
				rowsOf[surface]++
			}
		}
		fmt.Fprintln(w)
	}
	total(w, "rows held", rowsOf)
	total(w, "cases held", casesOf)
	must(t, w.Flush())
	must(t, os.WriteFile(*tableFile, []byte(text.String()), 0o600))
}

func total(w io.Writer, what string, of map[string]int) {
	fmt.Fprint(w, what)
	for _, surface := range surfaceNames {
		fmt.Fprintf(w, "\t%d", of[surface])
	}
	fmt.Fprintln(w)
}
