package cli

import (
	"context"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
)

func (a *app) pauseCmd() *cobra.Command {
	var reclaim bool
	cmd := &cobra.Command{
		Use:   "pause [--reclaim] BOX...",
		Short: "Have all processes of boxes stand still",
		Long: `Have all processes of boxes stand still, until 'sandbox resume'.

They use no CPU time, and the timeouts of commands wait. What is attached stays
attached. The memory of a box stays where it is: a pause is no snapshot, and
ends with a restart of the host, which stops the box.`,
		Args: cobra.MinimumNArgs(1),
	}
	cmd.Flags().BoolVar(&reclaim, "reclaim", false, "give back what memory the kernel can take, which slows the resume")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.change(cmd.Context(), args, func(on backend.Boxes, ctx context.Context, ref string) (api.Box, error) {
			return on.PauseBox(ctx, ref, reclaim)
		})
	}
	return a.completeBoxes(cmd, 0, api.Running)
}

func (a *app) resumeCmd() *cobra.Command {
	return a.completeBoxes(&cobra.Command{
		Use:   "resume BOX...",
		Short: "Let boxes go on that were paused",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.change(cmd.Context(), args, backend.Boxes.ResumeBox)
		},
	}, 0, api.Paused)
}
