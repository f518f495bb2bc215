package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core/options"
)

func (a *app) createCmd() *cobra.Command {
	var f boxFlags
	cmd := &cobra.Command{
		Use:   "create [FLAGS] [IMAGE]",
		Short: "Make a box, start it and print its id",
		Long: `Make a box, start it and print its id.

IMAGE is an image of the store ('sandbox images ls'), "default" if left out;
one that the store lacks is pulled, see 'sandbox images pull --help'.
--rootfs DIR takes a directory in its place. The box runs until it is stopped and
is then kept; with --rm it is removed.`,
		Example: "  sandbox create -n web --memory 256 debian",
		Args:    cobra.MaximumNArgs(1),
	}
	f.register(cmd.Flags())
	keepFlags(cmd, &f.AutoRemove, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		box, err := f.box(argument(args))
		if err != nil {
			return err
		}
		ctx := cmd.Context()
		return a.with(ctx, false, func(on backend.Boxes) error {
			made, err := a.create(ctx, on, box)
			if err != nil {
				return err
			}
			if a.asJSON() {
				return writeJSON(a.Out, made)
			}
			_, err = fmt.Fprintln(a.Out, printable(made.ID))
			return err
		})
	}
	return cmd
}

// create makes a box, and shows the progress of pulling its image.
func (a *app) create(ctx context.Context, on backend.Boxes, o options.Box) (api.Box, error) {
	meter := newMeter(a.Err)
	defer meter.clear()
	return on.CreateBox(meter.watch(ctx), o)
}

// argument returns the one optional argument of a verb, or "".
func argument(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
