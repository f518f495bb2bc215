package cli

import (
	"cmp"
	"fmt"
	"slices"
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
			boxes := slices.DeleteFunc(all, func(rec core.Record) bool { return status != "" && status != string(rec.State) })
			return a.printBoxes(boxes, quiet)
		})
	}
	return cmd
}

func (a *app) printBoxes(boxes []core.Record, quiet bool) error {
	switch {
	case a.asJSON():
		return writeJSON(a.Out, map[string]any{"boxes": infos(boxes, core.Record.Summary)})
	case quiet:
		return writeTable(a.Out, rows(boxes, func(b core.Record) []any { return []any{b.ID} })...)
	}
	now := time.Now()
	table := rows(boxes, func(b core.Record) []any {
		o := b.Options
		memory := fmt.Sprintf("%d MiB", o.MemoryMiB)
		return []any{b.ID, cmp.Or(o.Name, "-"), b.State, cmp.Or(o.Image, o.RootfsPath), o.CPUs, memory, age(b.CreatedAt, now)}
	})
	head := []any{"ID", "NAME", "STATUS", "IMAGE", "CPUS", "MEMORY", "AGE"}
	return writeTable(a.Out, append([][]any{head}, table...)...)
}

// infos is the boxes in JSON: [] when there are none.
func infos(recs []core.Record, view func(core.Record) core.Info) []core.Info {
	all := make([]core.Info, len(recs))
	for i, rec := range recs {
		all[i] = view(rec)
	}
	return all
}
