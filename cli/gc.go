package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sandbox/backend"
)

func (a *app) gcCmd() *cobra.Command {
	var olderThan seconds
	cmd := &cobra.Command{
		Use:   "gc [--older-than SECONDS]",
		Short: "Remove boxes that are stopped or have failed, and what a crash left behind",
		Args:  cobra.NoArgs,
	}
	cmd.Flags().Var(&olderThan, "older-than", "only boxes that stopped or failed at least this long ago")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		return a.with(ctx, false, func(on backend.Boxes) error {
			done, err := on.GC(ctx, time.Duration(olderThan))
			if a.asJSON() {
				return joined(writeJSON(a.Out, done), err)
			}
			for _, id := range done.Boxes {
				fmt.Fprintln(a.Out, printable(id))
			}
			fmt.Fprintf(a.Err, "removed %d boxes, freed %s\n", done.Removed, size(done.ReclaimedBytes))
			return err
		})
	}
	return cmd
}
