package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// Load reads a report that [Report.Save] has written.
func Load(file string) (r Report, err error) {
	doc, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(doc, &r); err != nil {
		return r, fmt.Errorf("%s is not a report of this program: %w", file, err)
	}
	return r, nil
}

// ratio is what one of our contestants took of the time of a peer in the same run.
// For a rate it is the share of the peer's.
type ratio struct {
	measurement, contestant, peer, unit string
	p50, p99                            float64
}

// ratios returns those of all our contestants that have a peer. It leaves out who
// did not run.
func (r Report) ratios() (all []ratio) {
	for _, ours := range r.Rows {
		for _, peer := range r.Rows {
			if ours.Measurement == peer.Measurement && ours.Unit == peer.Unit && ours.ours() && !peer.ours() && ours.ran() && peer.ran() {
				all = append(all, ratio{ours.Measurement, ours.Contestant, peer.Contestant, ours.Unit, ours.P50 / peer.P50, ours.P99 / peer.P99})
			}
		}
	}
	return all
}

func (r Row) ours() bool { return strings.HasPrefix(r.Contestant, "ours") }
func (r Row) ran() bool  { return r.DidNotRun == "" && r.P50 > 0 && r.P99 > 0 }

// Compare prints how the ratios of two runs differ. Only ratios are compared,
// since the speed of a machine changes from hour to hour.
func Compare(w io.Writer, old, new Report) {
	fmt.Fprint(w, "old: ")
	old.Machine.Print(w)
	fmt.Fprint(w, "new: ")
	new.Machine.Print(w)
	before := old.ratios()
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "measurement\twho\tpeer\tunit\tp50 old\tnew\tchange\tp99 old\tnew\tchange")
	for _, now := range new.ratios() {
		i := slices.IndexFunc(before, func(b ratio) bool {
			return b.measurement == now.measurement && b.contestant == now.contestant && b.peer == now.peer && b.unit == now.unit
		})
		if i < 0 {
			continue
		}
		was := before[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.3f\t%.3f\t%+.0f %%\t%.3f\t%.3f\t%+.0f %%\n", now.measurement, now.contestant, now.peer, now.unit,
			was.p50, now.p50, 100*(now.p50/was.p50-1), was.p99, now.p99, 100*(now.p99/was.p99-1))
	}
	t.Flush()
}
