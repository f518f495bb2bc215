package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core"
	"sandbox/core/fault"
)

func (a *app) restartCmd() *cobra.Command {
	grace := seconds(core.DefaultGrace)
	cmd := &cobra.Command{
		Use:   "restart [-t SECONDS] BOX...",
		Short: "Stop boxes and start them again",
		Long: `Stop boxes and start them again, with their disks; a stopped one is started.

A box that is removed when it stops (--rm) is refused.`,
		Args: cobra.MinimumNArgs(1),
	}
	cmd.Flags().VarP(&grace, "timeout", "t", "how long to wait between SIGTERM and SIGKILL")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.change(cmd.Context(), args, func(on backend.Boxes, ctx context.Context, ref string) (api.Box, error) {
			return restart(ctx, on, ref, time.Duration(grace))
		})
	}
	return a.completeBoxes(cmd, 0, "")
}

func restart(ctx context.Context, on backend.Boxes, ref string, grace time.Duration) (api.Box, error) {
	b, err := on.Box(ctx, ref)
	if err != nil {
		return api.Box{}, err
	}
	if b.Status.Up() {
		if b.AutoRemove {
			return api.Box{}, fault.New(fault.InvalidState, "box %q would be removed by the stop: it was made with --rm", ref)
		}
		if _, err := on.StopBox(ctx, b.ID, grace); err != nil {
			return api.Box{}, err
		}
	}
	return on.StartBox(ctx, b.ID)
}
