package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"sandbox/backend"
)

func (a *app) rmCmd() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "rm [-f] BOX...",
		Short: "Remove boxes and their disks",
		Args:  cobra.MinimumNArgs(1),
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "remove running boxes too")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		return a.with(ctx, false, func(on backend.Boxes) error {
			return a.eachRemoved(args, func(ref string) (string, error) { return on.RemoveBox(ctx, ref, force) })
		})
	}
	return a.completeBoxes(cmd, 0, "")
}

// eachRemoved removes each thing that is named and prints the names, or in JSON
// the ids that remove returned.
func (a *app) eachRemoved(refs []string, remove func(ref string) (string, error)) error {
	removed := []string{} // not nil, so that JSON shows [] and not null
	err := each(refs, func(ref string) error {
		id, err := remove(ref)
		if err != nil {
			return err
		}
		removed = append(removed, id)
		if a.asJSON() {
			return nil
		}
		_, err = fmt.Fprintln(a.Out, ref)
		return err
	})
	if a.asJSON() {
		return joined(writeJSON(a.Out, map[string]any{"removed": removed}), err)
	}
	return err
}
