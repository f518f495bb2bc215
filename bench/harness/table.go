package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
)

// Report holds everything that one run found.
type Report struct {
	Machine Facts `json:"machine"`
	Rounds  int   `json:"rounds"`
	PauseMS int64 `json:"pause_ms"`
	Rows    []Row `json:"rows"`
}

// Row holds the figures of one contestant in one measurement.
type Row struct {
	Measurement string    `json:"measurement"`
	Contestant  string    `json:"contestant"`
	Version     string    `json:"version,omitempty"`
	Isolation   string    `json:"isolation,omitempty"`
	Unit        string    `json:"unit"`
	P50         float64   `json:"p50"`
	P99         float64   `json:"p99"` // percentile of the times: for a rate, this is the slow end
	N           int       `json:"n"`
	Bars        []Verdict `json:"bars,omitempty"`
	DidNotRun   string    `json:"did_not_run,omitempty"` // why it did not run
}

// Verdict holds a bar and the value that was measured against it.
type Verdict struct {
	Bar   string  `json:"bar"` // in words
	Value float64 `json:"value"`
	Met   bool    `json:"met"`
}

// None returns the verdict on a bar that allows no things of a kind, when n
// were found.
func None(bar string, n int) Verdict { return Verdict{bar, float64(n), n == 0} }

// Most returns the verdict on a bar for a value itself, in words of that unit.
func Most(limit float64, unit string, value float64) Verdict {
	return Verdict{fmt.Sprintf("<= %g %s", limit, unit), value, value <= limit}
}

// String returns the verdict as the table shows it.
func (v Verdict) String() string {
	met := "met"
	if !v.Met {
		met = "MISSED"
	}
	return fmt.Sprintf("bar %s: %.3g %s", v.Bar, v.Value, met)
}

// Bar is a limit for the ratio between two contestants of a measurement.
type Bar struct {
	Contestant, Peer string
	Percentile       int
	Limit            float64
	Rate             bool // more is better: the ratio is one of rates, and must be at least the limit
}

// judge compares the two contestants. It returns false if one of them did not
// run, or not to the end.
func (b Bar) judge(all []Series) (Verdict, bool) {
	var mine, other time.Duration
	for _, s := range all {
		switch {
		case s.Why != "":
		case s.Name == b.Contestant:
			mine = percentile(s.Samples, b.Percentile)
		case s.Name == b.Peer:
			other = percentile(s.Samples, b.Percentile)
		}
	}
	if mine == 0 || other == 0 {
		return Verdict{}, false
	}
	if b.Rate {
		ratio := float64(other) / float64(mine)
		return Verdict{fmt.Sprintf("p%d >= %g x %s", b.Percentile, b.Limit, b.Peer), ratio, ratio >= b.Limit}, true
	}
	ratio := float64(mine) / float64(other)
	return Verdict{fmt.Sprintf("p%d <= %g x %s", b.Percentile, b.Limit, b.Peer), ratio, ratio <= b.Limit}, true
}

// unit says how durations are shown.
type unit struct {
	name string
	of   func(time.Duration) float64
}

// How times are shown.
var (
	Millis  = unit{"ms", func(d time.Duration) float64 { return float64(d) / 1e6 }}
	Seconds = unit{"s", time.Duration.Seconds}
)

// PerSecond returns a unit that shows as a rate what was done in a time: an
// amount, in units called name.
func PerSecond(name string, amount float64) unit {
	return unit{name, func(d time.Duration) float64 { return amount / d.Seconds() }}
}

// Rows returns the rows of a measurement, made from its series.
func Rows(u unit, all []Series, bars ...Bar) []Row {
	var out []Row
	for _, s := range all {
		r := Row{Contestant: s.Name, Version: s.Version, Isolation: s.Isolation, Unit: u.name, N: len(s.Samples), DidNotRun: s.Why}
		if s.Why == "" {
			r.P50, r.P99 = u.of(percentile(s.Samples, 50)), u.of(percentile(s.Samples, 99))
		}
		for _, b := range bars {
			if v, ok := b.judge(all); ok && b.Contestant == s.Name {
				r.Bars = append(r.Bars, v)
			}
		}
		out = append(out, r)
	}
	return out
}

// Add stores the rows of a measurement and prints them.
func (r *Report) Add(w io.Writer, name, what string, rows []Row) {
	fmt.Fprintf(w, "\n%s: %s\n", name, what)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  who\tp50\tp99\tunit\tn\tbars\tisolation")
	for _, one := range rows {
		one.Measurement = name
		r.Rows = append(r.Rows, one)
		one.print(t)
	}
	t.Flush()
}

func (r Row) print(w io.Writer) {
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

// Save writes the report as JSON.
func (r *Report) Save(file string) error {
	doc, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(doc, '\n'), 0o644)
}

// Weighs sets a size in bytes and judges it.
func (r *Row) Weighs(size, most int64) {
	r.P50 = float64(size) / (1 << 20)
	r.P99 = r.P50
	r.Bars = append(r.Bars, Verdict{fmt.Sprintf("<= %d MiB", most>>20), r.P50, size <= most})
}
