package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// writeJSON writes one JSON document, indented.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// writeTable writes rows in aligned columns. A cell may be any value.
func writeTable(w io.Writer, rows ...[]any) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = printable(fmt.Sprint(cell))
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	return t.Flush()
}

// printable replaces control characters, so that text of others (an image's name,
// a label) can't control the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) { // also U+009B, which begins a sequence for some terminals as ESC does
			return '?'
		}
		return r
	}, s)
}

// rows returns a table with one row for each thing.
func rows[T any](things []T, row func(T) []any) [][]any {
	all := make([][]any, len(things))
	for i, thing := range things {
		all[i] = row(thing)
	}
	return all
}

// age returns how long ago t was, in the largest unit.
func age(t, now time.Time) string {
	d := now.Sub(t)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// expires says in how long the time at comes; "-" if it is nil.
func expires(at *time.Time, now time.Time) string {
	if at == nil {
		return "-"
	}
	return "in " + age(now, *at)
}

// size returns n bytes for people to read: 1.5 GiB.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/unit, 0
	for ; f >= unit && i < len("KMGT")-1; i++ {
		f /= unit
	}
	return fmt.Sprintf("%.1f %ciB", f, "KMGT"[i])
}
