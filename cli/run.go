package cli

import (
	"github.com/spf13/cobra"

	"sandbox/core/fault"
	"sandbox/core/options"
)

func (a *app) runCmd() *cobra.Command {
	var f boxFlags
	var x execFlags
	cmd := &cobra.Command{
		Use:   "run [FLAGS] IMAGE -- CMD...",
		Short: "Make a box, run a command in it, remove the box",
		Long: `Make a box, run a command in it with its output as ours, and remove the box.

With --keep the box stays, running. The box is removed however this ends; by
kill -9 it is left when a server has made it. The exit code is the command's own (128+N if signal N ended
it); 125 means that not the command failed but sandbox did.
--rootfs DIR takes a directory in place of IMAGE: sandbox run --rootfs DIR -- CMD...`,
		Example: `  sandbox run debian -- python3 -c 'print(2**100)'
  sandbox run -it --network None debian -- bash`,
		Args:        cobra.MinimumNArgs(1),
		Annotations: map[string]string{runsCommand: "true"},
	}
	f.register(cmd.Flags())
	x.register(cmd.Flags())
	keepFlags(cmd, &f.AutoRemove, true)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		image, argv, err := split(cmd, args)
		if err != nil {
			return err
		}
		if image == "" && f.RootfsPath == "" {
			return fault.New(fault.InvalidArgument, "no image is named in front of the command")
		}
		o, err := x.exec(argv)
		if err != nil {
			return err
		}
		b, err := f.box(image)
		if err != nil {
			return err
		}
		ctx := cmd.Context()
		return a.with(ctx, true, func(on boxes) error {
			box, err := a.create(ctx, on, b)
			if err != nil {
				return err
			}
			return a.attached(ctx, joining{Exec: o, start: func(o options.Exec) (command, error) { return on.Run(ctx, box.ID, o) }})
		})
	}
	return cmd
}
