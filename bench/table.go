package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
)

// report is all that one run found.
type report struct {
	Machine facts `json:"machine"`
	Rounds  int   `json:"rounds"`
	PauseMS int64 `json:"pause_ms"`
	Rows    []row `json:"rows"`
}

// row is what one contestant showed in one measurement.
type row struct {
	Measurement string    `json:"measurement"`
	Contestant  string    `json:"contestant"`
	Version     string    `json:"version,omitempty"`
	Isolation   string    `json:"isolation,omitempty"`
	Unit        string    `json:"unit"`
	P50         float64   `json:"p50"`
	P99         float64   `json:"p99"` // of time: with a rate, the slow end
	N           int       `json:"n"`
	Bars        []verdict `json:"bars,omitempty"`
	DidNotRun   string    `json:"did_not_run,omitempty"` // why
}

// verdict is a bar and what was measured against it.
type verdict struct {
	Bar   string  `json:"bar"` // in words
	Value float64 `json:"value"`
	Met   bool    `json:"met"`
}

func (v verdict) String() string {
	met := "met"
	if !v.Met {
		met = "MISSED"
	}
	return fmt.Sprintf("bar %s: %.3g %s", v.Bar, v.Value, met)
}

// bar is a limit for the ratio between two contestants of a measurement.
type bar struct {
	contestant, peer string
	percentile       int
	limit            float64
	rate             bool // more is better: the ratio is of rates and must reach the limit
}

// judge compares; false where one of the two did not run.
func (b bar) judge(all []series) (verdict, bool) {
	var mine, other time.Duration
	for _, s := range all {
		switch s.name {
		case b.contestant:
			mine = percentile(s.samples, b.percentile)
		case b.peer:
			other = percentile(s.samples, b.percentile)
		}
	}
	if mine == 0 || other == 0 {
		return verdict{}, false
	}
	if b.rate {
		ratio := float64(other) / float64(mine)
		return verdict{fmt.Sprintf("p%d >= %g x %s", b.percentile, b.limit, b.peer), ratio, ratio >= b.limit}, true
	}
	ratio := float64(mine) / float64(other)
	return verdict{fmt.Sprintf("p%d <= %g x %s", b.percentile, b.limit, b.peer), ratio, ratio <= b.limit}, true
}

// unit says how durations are shown.
type unit struct {
	name string
	of   func(time.Duration) float64
}

var (
	millis  = unit{"ms", func(d time.Duration) float64 { return float64(d) / 1e6 }}
	seconds = unit{"s", time.Duration.Seconds}
)

// rows makes the rows of a measurement out of its series.
func rows(u unit, all []series, bars ...bar) []row {
	var out []row
	for _, s := range all {
		r := row{Contestant: s.name, Version: s.version, Isolation: s.isolation, Unit: u.name, N: len(s.samples), DidNotRun: s.why}
		if s.why == "" {
			r.P50, r.P99 = u.of(percentile(s.samples, 50)), u.of(percentile(s.samples, 99))
		}
		for _, b := range bars {
			if v, ok := b.judge(all); ok && b.contestant == s.name {
				r.Bars = append(r.Bars, v)
			}
		}
		out = append(out, r)
	}
	return out
}

// add keeps the rows of a measurement and prints them.
func (r *report) add(w io.Writer, m measurement, rows []row) {
	fmt.Fprintf(w, "\n%s: %s\n", m.name, m.what)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  who\tp50\tp99\tunit\tn\tbars\tisolation")
	for _, one := range rows {
		one.Measurement = m.name
		r.Rows = append(r.Rows, one)
		one.print(t)
	}
	t.Flush()
}

func (r row) print(w io.Writer) {
	who := r.Contestant
	if r.Version != "" {
		who += " " + r.Version
	}
	if r.DidNotRun != "" {
		fmt.Fprintf(w, "  %s\tdid not run: %s\n", who, r.DidNotRun)
		return
	}
	fmt.Fprintf(w, "  %s\t%.2f\t%.2f\t%s\t%d\t", who, r.P50, r.P99, r.Unit, r.N)
	for i, v := range r.Bars {
		if i > 0 {
			fmt.Fprint(w, "; ")
		}
		fmt.Fprint(w, v)
	}
	fmt.Fprintf(w, "\t%s\n", r.Isolation)
}

// save writes the report as JSON.
func (r *report) save(file string) error {
	doc, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(doc, '\n'), 0o644)
}
