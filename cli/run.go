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

func (a *app) runCmd() *cobra.Command {
	var f boxFlags
	var x execFlags
	var detach bool
	cmd := &cobra.Command{
		Use:   "run [FLAGS] IMAGE [-- CMD...]",
		Short: "Make a box, run a command in it, remove the box",
		Long: `Make a box, run a command in it, print the command's output, and remove the box.
Without CMD that is the image's own command: its Entrypoint with its Cmd. CMD
takes the place of both.

With --keep the box stays, running. With -d the command is the box's main command,
as of 'sandbox create': it is left running, the box's id is printed, and the box
stays until it is stopped; with --stop-with-command it stops when the command has
ended. With --timeout the command of -d is an ordinary one. Otherwise the box is
removed even if this command is killed, except that after kill -9 a box that a
server made is left. The exit code is the command's own (128+N if signal N ended
it); 125 means that sandbox failed, not the command.
--rootfs DIR takes a directory in place of IMAGE: sandbox run --rootfs DIR -- CMD...`,
		Example: `  sandbox run debian -- python3 -c 'print(2**100)'
  sandbox run -it --network None debian -- bash`,
		Args:        cobra.MinimumNArgs(1),
		Annotations: map[string]string{runsCommand: "true"},
	}
	f.register(cmd.Flags())
	f.service.exclude(cmd)
	x.register(cmd.Flags())
	keepFlags(cmd, &f.AutoRemove, true)
	cmd.Flags().BoolVarP(&detach, "detach", "d", false, "print the box's id and leave the command running")
	cmd.MarkFlagsMutuallyExclusive("detach", "interactive")
	cmd.MarkFlagsMutuallyExclusive("detach", "tty")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		image, argv, err := split(cmd, args)
		if err != nil {
			return err
		}
		if image == "" && f.RootfsPath == "" {
			return fault.New(fault.InvalidArgument, "no image is named before the command")
		}
		if detach && x.timeout == 0 {
			return a.runService(cmd.Context(), &f, image, argv)
		}
		b, err := f.box(image)
		if err != nil {
			return err
		}
		if err := a.checkTerminal(x.Exec); err != nil {
			return err
		}
		return a.runCommand(cmd.Context(), b, x, argv, detach)
	}
	return cmd
}

// runCommand makes a box and runs a command in it that is not its main one.
func (a *app) runCommand(ctx context.Context, b options.Box, x execFlags, argv []string, detach bool) error {
	return a.with(ctx, !detach, func(on backend.Boxes) error {
		argv, err := a.argv(ctx, on, b.Image, argv)
		if err != nil {
			return err
		}
		o, err := x.exec(argv)
		if err != nil {
			return err
		}
		return a.runIn(ctx, on, b, joining{Exec: o, keys: x.keys}, detach)
	})
}

// runService makes a box with a main command and prints the box's id, or in JSON the exec.
func (a *app) runService(ctx context.Context, f *boxFlags, image string, argv []string) error {
	mainCommand(&f.Box, argv)
	b, err := f.box(image)
	if err != nil {
		return err
	}
	return a.with(ctx, false, func(on backend.Boxes) error {
		box, err := a.create(ctx, on, b)
		if err != nil {
			return err
		}
		if !a.asJSON() || box.State.Command == nil || box.State.Command.ExecID == "" {
			_, err = fmt.Fprintln(a.Out, printable(box.ID))
			return err
		}
		e, err := on.Exec(ctx, box.ID, box.State.Command.ExecID)
		if err != nil {
			return err
		}
		return writeJSON(a.Out, e)
	})
}

// runIn makes a box and runs a command in it, or leaves it running.
func (a *app) runIn(ctx context.Context, on backend.Boxes, b options.Box, j joining, detach bool) error {
	box, err := a.create(ctx, on, b)
	if err != nil {
		return err
	}
	if detach {
		return a.leave(ctx, on, box, j.Exec)
	}
	j.box, j.start = box.ID, func(o options.Exec) (backend.Command, error) { return on.Run(ctx, box.ID, o) }
	if box.AutoRemove {
		j.keep = on.Keep
	}
	return a.attached(ctx, j)
}

// argv returns the command that was given, or else the image's own. It shows the
// progress of pulling the image. Errors: InvalidArgument (there is none).
func (a *app) argv(ctx context.Context, on backend.Boxes, image string, given []string) ([]string, error) {
	if len(given) > 0 {
		return given, nil
	}
	meter := newMeter(a.Err)
	defer meter.clear()
	return on.ImageCommand(ctx, image, meter.show)
}

// leave starts the command of run -d and prints the box's id, or in JSON the exec.
// If the command can't be started, the box is removed unless it is to be kept.
func (a *app) leave(ctx context.Context, on backend.Boxes, box api.Box, o options.Exec) error {
	e, err := on.StartExec(ctx, box.ID, o)
	switch {
	case err != nil && box.AutoRemove:
		_, removing := on.RemoveBox(context.WithoutCancel(ctx), box.ID, true)
		return joined(err, removing)
	case err != nil:
		return err
	case a.asJSON():
		return writeJSON(a.Out, e)
	}
	_, err = fmt.Fprintln(a.Out, printable(box.ID))
	return err
}
