package daemon_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"sandbox/test/boxes"
)

// point is a point of a series.
type point struct {
	at      time.Time
	percent float64
	memory  float64
	tasks   float64
}

// series returns what the server says that a box used over time.
func (p *program) series(box, query string) (all []point) {
	p.t.Helper()
	a := p.ask("GET", box+"/metrics?"+query, nil)
	if a.status == 503 { // the log engine is starting
		return nil
	}
	points, _ := a.want(p.t, 200, "")["points"].([]any)
	for _, one := range points {
		m, _ := one.(map[string]any)
		text, _ := m["at"].(string)
		at, err := time.Parse(time.RFC3339Nano, text)
		must(p.t, err)
		percent, _ := m["cpu_percent"].(float64)
		memory, _ := m["memory_bytes"].(float64)
		tasks, _ := m["processes"].(float64)
		all = append(all, point{at, percent, memory, tasks})
	}
	return all
}

// TestSeriesOfABusyBox wants a box that works to be told from one that does not, in
// memory and in the log engine's table, which keeps what was measured when the server
// is killed and when it ends.
func TestSeriesOfABusyBox(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags func(*testing.T) []string
		keeps bool
	}{
		"in memory":     {func(*testing.T) []string { return []string{"--chdb-lib", "/none"} }, false},
		"in the engine": {func(*testing.T) []string { return nil }, true},
		"on a server":   {func(t *testing.T) []string { return onServers(t, 1) }, true},
		"on a cluster":  {func(t *testing.T) []string { return onServers(t, 2) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, append(c.flags(t), "--metrics-interval", "1s")...)
			busy, still := p.box(), p.box()
			p.sh(busy, "while :; do :; done")
			boxes.Await(t, "points of a busy box", func() bool {
				all := p.series(busy, "from=1h&step=3s")
				return len(all) > 1 && all[len(all)-1].percent > 1 // boxes share what one busy process of the host has
			})
			before := p.series(busy, "from=1h&step=3s")
			checkPoints(t, before)
			for i, one := range p.series(still, "from=1h&step=3s") {
				last := before[len(before)-1].percent
				if one.percent > 50 || one.tasks != 0 || i > 0 && one.percent >= last { // it has just been made in the first
					t.Errorf("a box that does nothing has used %+v, a busy one %v%%", one, last)
				}
			}
			from := before[len(before)-1].at
			if part := p.series(busy, "step=1s&from="+from.Format(time.RFC3339Nano)); len(part) == 0 || part[0].at.Before(from.Truncate(time.Second)) {
				t.Errorf("from %v on: %+v", from, part)
			}
			p.kill()
			p.start()
			p.wantKept(busy, before[0], c.keeps)
			must(t, p.cmd.Process.Signal(os.Interrupt))
			must(t, p.cmd.Wait())
			p.start()
			p.wantKept(busy, before[0], c.keeps)
		})
	}
}

// checkPoints wants a series of a box that runs one command.
func checkPoints(t *testing.T, all []point) {
	t.Helper()
	for i, one := range all {
		if one.memory == 0 || one.tasks > 2 || i > 0 && !one.at.After(all[i-1].at) {
			t.Errorf("point %d of %+v", i, all)
		}
	}
	if last := all[len(all)-1]; last.tasks == 0 {
		t.Errorf("no process in %+v", last)
	}
}

// wantKept wants a point of a server that has ended to be there, or not.
func (p *program) wantKept(box string, first point, keeps bool) {
	p.t.Helper()
	var all []point
	boxes.Await(p.t, "points after a restart", func() bool {
		all = p.series(box, "from=1h&step=3s")
		return len(all) > 0
	})
	if kept := all[0].at.Equal(first.at); kept != keeps {
		p.t.Errorf("kept: %v, want %v: from %v on, before %v", kept, keeps, all[0].at, first.at)
	}
}

// TestNoMetrics has the server keep nothing.
func TestNoMetrics(t *testing.T) {
	t.Parallel()
	p := serve(t, "--metrics-interval", "0")
	box := p.box()
	p.ask("GET", box+"/metrics?from=1h", nil).want(t, 503, "unavailable")
	if m := p.ask("GET", box+"/metrics", nil).want(t, 200, ""); fmt.Sprint(m["processes"]) != "0" {
		t.Errorf("measured now: %v", m)
	}
}
