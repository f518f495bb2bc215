package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sandbox/core"
	"sandbox/core/local"
)

func (a *app) startCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "start BOX...",
		Short: "Start boxes that were stopped",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.change(cmd.Context(), args, (*core.Box).Start)
		},
	}
}

// change does something to each box and prints what became of them.
func (a *app) change(ctx context.Context, refs []string, do func(*core.Box, context.Context) (core.Record, error)) error {
	return a.with(ctx, false, func(host *local.Host) error {
		var changed []core.Record
		err := each(refs, func(ref string) error {
			box, err := host.Get(ctx, ref)
			if err != nil {
				return err
			}
			rec, err := do(box, ctx)
			if err != nil {
				return err
			}
			changed = append(changed, rec)
			if a.asJSON() {
				return nil
			}
			_, err = fmt.Fprintln(a.Out, ref)
			return err
		})
		if a.asJSON() {
			return joined(writeJSON(a.Out, map[string]any{"boxes": infos(changed, core.Record.Info)}), err)
		}
		return err
	})
}
