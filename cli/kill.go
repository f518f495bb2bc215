package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core/fault"
)

func (a *app) killCmd() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "kill [-s SIG] BOX EXEC",
		Short: "End a command of a box, or send it a signal",
		Long: `End a command of a box and all that it has started, with SIGKILL.

With -s only the command's own process gets that signal. 'sandbox ps BOX' lists
the commands.`,
		Example: "  sandbox kill -s HUP web exec_6fq2vknzwx5n4tsm7yde",
		Args:    cobra.ExactArgs(2),
	}
	cmd.Flags().StringVarP(&name, "signal", "s", "KILL", "the `SIGNAL`, such as TERM or HUP")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		sig := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG"))
		if sig == 0 {
			return fault.New(fault.InvalidArgument, "-s %q: there is no such signal; want a name such as TERM or HUP", name)
		}
		return a.with(ctx, false, func(on backend.Boxes) error { return kill(ctx, on, args[0], args[1], sig) })
	}
	return a.completeBoxes(cmd, 1, api.Running)
}

// kill ends a command, or sends it another signal. Errors: ExecNotFound,
// InvalidState (it has ended).
func kill(ctx context.Context, on backend.Boxes, ref, id string, sig unix.Signal) error {
	if sig == unix.SIGKILL {
		_, err := on.CancelExec(ctx, ref, id, 0)
		return err
	}
	return on.Signal(ctx, ref, id, sig)
}
