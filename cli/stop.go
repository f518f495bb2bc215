package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core"
)

func (a *app) stopCmd() *cobra.Command {
	grace := seconds(core.DefaultGrace)
	cmd := &cobra.Command{
		Use:   "stop [-t SECONDS] BOX...",
		Short: "Stop boxes; their disks are kept",
		Long: `Stop boxes; their disks are kept.

Every process of a box gets SIGTERM, and SIGKILL after the time of -t. A box
made with --rm is removed.`,
		Args: cobra.MinimumNArgs(1),
	}
	cmd.Flags().VarP(&grace, "timeout", "t", "how long to wait between SIGTERM and SIGKILL")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.change(cmd.Context(), args, func(on backend.Boxes, ctx context.Context, ref string) (api.Box, error) {
			return on.StopBox(ctx, ref, time.Duration(grace))
		})
	}
	return a.completeBoxes(cmd, 0, api.Running)
}
