package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
)

func (a *app) startCmd() *cobra.Command {
	return a.completeBoxes(&cobra.Command{
		Use:   "start BOX...",
		Short: "Start boxes that were stopped",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.change(cmd.Context(), args, backend.Boxes.StartBox)
		},
	}, 0, api.Stopped)
}

// change calls do for each box and prints the boxes' new states.
func (a *app) change(ctx context.Context, refs []string, do func(backend.Boxes, context.Context, string) (api.Box, error)) error {
	return a.with(ctx, false, func(on backend.Boxes) error {
		changed := []api.Box{} // not nil, so that JSON shows [] and not null
		err := each(refs, func(ref string) error {
			box, err := do(on, ctx, ref)
			if err != nil {
				return err
			}
			changed = append(changed, box)
			if a.asJSON() {
				return nil
			}
			_, err = fmt.Fprintln(a.Out, ref)
			return err
		})
		if a.asJSON() {
			return joined(writeJSON(a.Out, map[string]any{"boxes": changed}), err)
		}
		return err
	})
}
