// Command figures prints how long the functions and files of this tree are, how
// much of what it exports is documented, and how many lines its tests have:
//
//	2481 functions: median 10, p90 23, max 60 lines
//
// A function counts from its func to its closing brace. With -check it exits
// with 1 when a figure is over its bar, and names what is to be mended. It reads
// the files that git knows below the working directory.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Bars: what the figures may be at most. All exported names are documented.
const (
	functionMedian = 10
	functionP90    = 23
	functionMax    = 60
	fileMedian     = 116
)

func main() {
	check := flag.Bool("check", false, "exit with 1 when a figure is over its bar, and name what is to be mended")
	flag.Parse()
	s, err := read()
	if err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(2)
	}
	s.print(os.Stdout)
	if over := s.over(); *check && len(over) > 0 {
		fmt.Fprintln(os.Stderr, strings.Join(over, "\n"))
		os.Exit(1)
	}
}

// read surveys the Go files that git knows, also those not committed yet.
func read() (*survey, error) {
	out, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	s := &survey{}
	for path := range strings.Lines(string(out)) {
		path = strings.TrimSuffix(path, "\n")
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue // removed and not committed yet
		}
		if err == nil {
			err = s.add(path, text)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *survey) print(w io.Writer) {
	functions, files := sizes(s.functions), sizes(s.files)
	fmt.Fprintf(w, "%d functions: median %d, p90 %d, max %d lines\n",
		len(functions), percentile(functions, 50), percentile(functions, 90), percentile(functions, 100))
	fmt.Fprintf(w, "%d files: median %d, max %d lines\n", len(files), percentile(files, 50), percentile(files, 100))
	documented := 100.0
	if s.exported > 0 {
		documented = 100 * float64(s.exported-len(s.undocumented)) / float64(s.exported)
	}
	fmt.Fprintf(w, "%d exported names: %.1f %% documented\n", s.exported, documented)
	fmt.Fprintf(w, "%d lines of code, %d lines of tests\n", s.code, s.tests)
}

// over says which figures are over their bars. Where a median or a percentile
// is, the longest are named: they are where shortening begins.
func (s *survey) over() (said []string) {
	functions, files := sizes(s.functions), sizes(s.files)
	for _, f := range []struct {
		what      string
		is, limit int
		among     []item
	}{
		{"median of functions", percentile(functions, 50), functionMedian, s.functions},
		{"p90 of functions", percentile(functions, 90), functionP90, s.functions},
		{"median of files", percentile(files, 50), fileMedian, s.files},
	} {
		if f.is > f.limit {
			said = append(said, fmt.Sprintf("%s is %d, the bar is %d; the longest:", f.what, f.is, f.limit))
			said = append(said, longest(f.among, 20)...)
		}
	}
	for _, f := range s.functions {
		if f.lines > functionMax {
			said = append(said, fmt.Sprintf("%s has %d lines, the bar is %d", f.name, f.lines, functionMax))
		}
	}
	for _, name := range s.undocumented {
		said = append(said, name+" has no doc comment")
	}
	return said
}

// longest names the n longest items.
func longest(items []item, n int) (names []string) {
	sorted := slices.SortedFunc(slices.Values(items), func(a, b item) int { return b.lines - a.lines })
	for _, i := range sorted[:min(n, len(sorted))] {
		names = append(names, fmt.Sprintf("  %s has %d lines", i.name, i.lines))
	}
	return names
}

func sizes(items []item) (lines []int) {
	for _, i := range items {
		lines = append(lines, i.lines)
	}
	slices.Sort(lines)
	return lines
}

// percentile returns the nearest-rank percentile p of sorted numbers, and 0 of
// none.
func percentile(sorted []int, p int) int {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max((len(sorted)*p+99)/100, 1)-1]
}
