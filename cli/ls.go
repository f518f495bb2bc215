package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sandbox/core"
	"sandbox/core/local"
)

func (a *app) lsCmd() *cobra.Command {
	var status string
	var quiet bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the boxes, newest first",
		Args:  cobra.NoArgs,
	}
	cmd.Flags().VarP(&choice{&status, []string{string(core.Running), string(core.Stopped)}}, "status", "s", "only boxes that are running or stopped")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print ids alone")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.with(cmd.Context(), false, func(host *local.Host) error {
			all, err := host.List(cmd.Context())
			if err != nil {
				return err
			}
			boxes := []core.Info{} // [] in JSON, also when there are none
			for _, rec := range all {
				if status == "" || status == string(rec.State) {
					boxes = append(boxes, rec.Info())
				}
			}
			return a.printBoxes(boxes, quiet)
		})
	}
	return cmd
}

func (a *app) printBoxes(boxes []core.Info, quiet bool) error {
	if a.asJSON() {
		return writeJSON(a.Out, map[string]any{"boxes": boxes})
	}
	var rows [][]any
	if !quiet {
		rows = append(rows, []any{"ID", "NAME", "STATUS", "IMAGE", "CPUS", "MEMORY", "AGE"})
	}
	now := time.Now()
	for _, b := range boxes {
		if quiet {
			rows = append(rows, []any{b.ID})
			continue
		}
		rows = append(rows, []any{b.ID, orDash(b.Name), b.Status, origin(b), b.CPUs, fmt.Sprintf("%d MiB", b.MemoryMiB), age(b.CreatedAt, now)})
	}
	return writeTable(a.Out, rows...)
}

// origin is where the box's files came from.
func origin(b core.Info) string {
	if b.Image != "" {
		return b.Image
	}
	return b.RootfsPath
}
