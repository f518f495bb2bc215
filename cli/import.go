package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"sandbox/core/image"
	"sandbox/core/local"
)

func (a *app) imagesImportCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "import NAME SOURCE",
		Short: "Make an image of a folder or an archive",
		Long: `Make an image of a folder or an archive and call it NAME.

SOURCE is a folder with a root file system, a tar of one (plain, gzip or zstd),
a docker-archive (what docker save writes), an OCI layout, or a tar of one.`,
		Example: "  mmdebstrap --variant=minbase bookworm debian.tar && sandbox images import debian debian.tar",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.with(ctx, false, func(host *local.Host) error {
				meter := newMeter(a.Err)
				info, err := host.Images.Import(ctx, args[0], args[1], meter.show)
				meter.clear()
				if err != nil {
					return err
				}
				if a.asJSON() {
					return writeJSON(a.Out, info)
				}
				_, err = fmt.Fprintf(a.Out, "%s %s %s\n", info.Name, shortID(info.ID), size(info.Size))
				return err
			})
		},
	}
}

// meter is one line of progress on a terminal; elsewhere it is silent.
type meter struct {
	w    io.Writer // nil: silent
	last time.Time
}

// perLine is how often the line changes.
const perLine = 100 * time.Millisecond

func newMeter(w io.Writer) *meter {
	if asTerminal(w) == nil {
		return &meter{}
	}
	return &meter{w: w}
}

// show writes how far an import has come, but not more often than one can read.
func (m *meter) show(p image.Progress) {
	if m.w == nil || time.Since(m.last) < perLine {
		return
	}
	m.last = time.Now()
	fmt.Fprintf(m.w, "\r\x1b[Klayer %d of %d: %s", p.Layer, p.Layers, size(p.Done))
	if p.Total > 0 {
		fmt.Fprintf(m.w, " of %s", size(p.Total))
	}
}

// clear takes the line away.
func (m *meter) clear() {
	if m.w != nil && !m.last.IsZero() {
		fmt.Fprint(m.w, "\r\x1b[K")
	}
}
