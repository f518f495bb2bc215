package cli

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/client"
)

func (a *app) lsCmd() *cobra.Command {
	var status string
	var quiet bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the boxes, newest first",
		Args:  cobra.NoArgs,
	}
	cmd.Flags().VarP(&choice{&status, []string{string(api.Running), string(api.Stopped)}}, "status", "s", "only boxes that are running or stopped")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print ids alone")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.with(cmd.Context(), false, func(on boxes) error {
			all, err := on.Boxes(cmd.Context(), client.Filter{Status: api.BoxStatus(status)})
			if err != nil {
				return err
			}
			return a.printBoxes(all, quiet)
		})
	}
	return cmd
}

func (a *app) printBoxes(boxes []api.Box, quiet bool) error {
	switch {
	case a.asJSON():
		return writeJSON(a.Out, map[string]any{"boxes": boxes})
	case quiet:
		return writeTable(a.Out, rows(boxes, func(b api.Box) []any { return []any{b.ID} })...)
	}
	now := time.Now()
	table := rows(boxes, func(b api.Box) []any {
		memory := fmt.Sprintf("%d MiB", b.MemoryMiB)
		root := cmp.Or(deref(b.Image), deref(b.RootfsPath))
		return []any{b.ID, cmp.Or(deref(b.Name), "-"), b.Status, root, b.CPUs, memory, age(b.CreatedAt, now)}
	})
	head := []any{"ID", "NAME", "STATUS", "IMAGE", "CPUS", "MEMORY", "AGE"}
	return writeTable(a.Out, append([][]any{head}, table...)...)
}

// deref returns the value that p points to, or the zero value if p is nil.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
