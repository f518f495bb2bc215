package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// outcome is what became of one attack.
type outcome struct{ name, verdict, why string }

// The verdicts.
const (
	held    = "held"
	through = "GOT THROUGH"
	notRun  = "NOT RUN"
)

// result is what became of the attacks of a family.
type result struct {
	family
	outcomes []outcome
	saw      []string // what the host saw
}

// broken adds to a result that the rest of its attacks did not run.
func (r result) broken(err error) result {
	r.outcomes = append(r.outcomes, outcome{"the rest", notRun, err.Error()})
	return r
}

// read reads what the program of a family says: how many attacks it has, and a line for
// each.
func (r *result) read(said string) {
	plan := -1
	for line := range strings.Lines(said) {
		part := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		switch {
		case len(part) == 2 && part[0] == "plan":
			plan, _ = strconv.Atoi(part[1])
		case len(part) == 3:
			r.outcomes = append(r.outcomes, outcome{part[0], part[1], part[2]})
		}
	}
	if len(r.outcomes) != plan {
		r.outcomes = append(r.outcomes, outcome{"all", notRun, fmt.Sprintf("%d attacks of %d told of themselves", len(r.outcomes), plan)})
	}
}

// count returns how many attacks have a verdict.
func (r *result) count(verdict string) (n int) {
	for _, o := range r.outcomes {
		if o.verdict == verdict {
			n++
		}
	}
	return n
}

// walls returns what the attacks met most often.
func (r *result) walls() string {
	counts := map[string]int{}
	for _, o := range r.outcomes {
		if o.verdict == held {
			counts[o.why]++
		}
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var told []string
	for _, name := range names[:min(len(names), 4)] {
		told = append(told, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(told, ", ")
}

// table returns the board.
func table(results []result) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "class\ttried\theld\tthrough\tnot run\twhat they met\twhat the host saw")
	var sum [4]int
	for i := range results {
		r := &results[i]
		n := [4]int{len(r.outcomes), r.count(held), r.count(through), r.count(notRun)}
		for i := range n {
			sum[i] += n[i]
		}
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\t%s\n", r.class, n[0], n[1], n[2], n[3], r.walls(), cmp.Or(strings.Join(r.saw, "; "), "nothing"))
	}
	_, _ = fmt.Fprintf(w, "all\t%d\t%d\t%d\t%d\t\t\n", sum[0], sum[1], sum[2], sum[3])
	_ = w.Flush()
	return b.String()
}

// printAll prints every attack.
func printAll(w io.Writer, results []result) {
	for _, r := range results {
		for _, o := range r.outcomes {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.name, o.verdict, o.name, o.why)
		}
	}
}

// verdict returns an error that names what got through, what did not run, and what the
// host saw.
func verdict(results []result) error {
	var wrong []string
	for _, r := range results {
		for _, o := range r.outcomes {
			if o.verdict != held {
				wrong = append(wrong, fmt.Sprintf("%s: %s: %s: %s", r.name, o.name, o.verdict, o.why))
			}
		}
		for _, saw := range r.saw {
			wrong = append(wrong, fmt.Sprintf("%s: the host saw: %s", r.name, saw))
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

// The table stands in a document between these lines, and that of the boxes of an
// ordinary user between others.
const (
	begin         = "<!-- the board -->\n```\n"
	beginRootless = "<!-- the board without root -->\n```\n"
	end           = "```\n<!-- end of the board -->\n"
)

// writeTable puts the table into a document.
func writeTable(file string, rootless bool, table string) error {
	begin := begin
	if rootless {
		begin = beginRootless
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has no place for the table", file)
	}
	return os.WriteFile(file, []byte(before+begin+table+end+after), 0o644) //nolint:gosec // a document
}
