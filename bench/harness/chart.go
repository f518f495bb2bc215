package harness

import (
	_ "embed"
	"html/template"
	"io"
	"strings"
)

//go:embed chart.svg.tmpl
var chartText string

var chartTemplate = template.Must(template.New("chart").Parse(chartText))

// The sizes of the chart, in pixels.
const (
	barStart  = 150 // where bars begin
	barLength = 480 // of the longest bar of a measurement
	lineHigh  = 22
	headHigh  = 30
)

// bar is one contestant's line of the chart.
type bar struct {
	Who     string
	Ours    bool
	P50     float64
	Unit    string
	Y       int
	X, Long int
}

// group is one measurement of the chart.
type group struct {
	What string
	Y    int
	Bars []bar
}

// Draw writes the medians of the named measurements as an SVG picture: a bar for
// each contestant, as long as its share of the slowest. what says in words what
// each name measures.
func (r Report) Draw(w io.Writer, names []string, what map[string]string) error {
	y := 0
	var groups []group
	for _, name := range names {
		g := group{What: what[name], Y: y + headHigh - 10}
		y += headHigh
		var longest float64
		for _, row := range r.Rows {
			if row.Measurement == name && row.ran() {
				longest = max(longest, row.P50)
			}
		}
		for _, row := range r.Rows {
			if row.Measurement != name || !row.ran() {
				continue
			}
			who := strings.TrimSpace(row.Contestant + " " + row.Version)
			g.Bars = append(g.Bars, bar{who, row.ours(), row.P50, row.Unit, y, barStart, max(1, int(barLength*row.P50/longest))})
			y += lineHigh
		}
		if len(g.Bars) > 0 {
			groups = append(groups, g)
		} else {
			y -= headHigh
		}
	}
	return chartTemplate.Execute(w, map[string]any{"Groups": groups, "Height": y + headHigh, "Foot": y + headHigh - 10, "Machine": r.Machine, "Rounds": r.Rounds})
}
