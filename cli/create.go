package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core/fault"
	"sandbox/core/options"
)

func (a *app) createCmd() *cobra.Command {
	var f boxFlags
	var own bool
	cmd := &cobra.Command{
		Use:   "create [FLAGS] [IMAGE] [-- CMD...]",
		Short: "Make a box, start it and print its id",
		Long: `Make a box, start it and print its id.

IMAGE is an image of the store ('sandbox images ls'), "default" if left out;
one that the store lacks is pulled, see 'sandbox images pull --help'.
--rootfs DIR takes a directory in its place. The box runs until it is stopped and
is then kept; with --rm it is removed.

CMD is the main command of the box: it is started with the box, each time, and
its output is kept ('sandbox logs BOX', 'sandbox ps BOX'). --image-command takes
the image's own, its Entrypoint with its Cmd. Without one the box waits for
commands.`,
		Example: `  sandbox create -n web --memory 256 debian
  sandbox create -n api --restart always --health-cmd 'wget -q localhost:8000' python -- python3 -m http.server`,
	}
	f.register(cmd.Flags())
	f.service.exclude(cmd)
	cmd.Flags().BoolVar(&own, "image-command", false, "run the image's own command as the main command")
	keepFlags(cmd, &f.AutoRemove, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		image, argv, err := imageAnd(cmd, args)
		if err != nil {
			return err
		}
		if own && len(argv) > 0 {
			return fault.New(fault.InvalidArgument, "name a command or use --image-command, not both")
		}
		if own || len(argv) > 0 {
			mainCommand(&f.Box, argv)
		}
		box, err := f.box(image)
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

// imageAnd separates the image, "" if there is none, from the main command behind the
// dashes. Errors: InvalidArgument (something else stands before them).
func imageAnd(cmd *cobra.Command, args []string) (image string, argv []string, err error) {
	before := args
	if at := cmd.ArgsLenAtDash(); at >= 0 {
		before, argv = args[:at], args[at:]
	}
	switch len(before) {
	case 0:
		return "", argv, nil
	case 1:
		return before[0], argv, nil
	}
	return "", nil, fault.New(fault.InvalidArgument, "%q after the image: write the command after --", before[1])
}
