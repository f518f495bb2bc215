package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/client"
	"sandbox/core/options"
)

func (a *app) attachCmd() *cobra.Command {
	var interactive, observe bool
	var shell string
	keys := newKeySequence()
	cmd := &cobra.Command{
		Use:   "attach [-i|--observe] BOX [EXEC]",
		Short: "Join a command that runs, or a new shell",
		Long: `Join a command that runs in a box ('exec -d' prints its id, 'ps' lists them), from the oldest
output that is kept; or without EXEC start a shell on a terminal.

Ctrl-C leaves the command running; on a terminal it is sent as a key, and
Ctrl-P Ctrl-Q leave the command, a shell too: it is joined again where it was left.
With --observe any number may watch the output, beside the one that has joined.
The exit code is the command's own if it ends first. A shell ends when its terminal
does.`,
		Example:     "  sandbox attach web\n  sandbox attach web exec_6fq2vknzwx5n4tsm7yde",
		Args:        cobra.RangeArgs(1, 2),
		Annotations: map[string]string{runsCommand: "true"},
	}
	cmd.Flags().BoolVarP(&interactive, "interactive", "i", false, "pass standard input to the command (a terminal always gets it)")
	cmd.Flags().BoolVar(&observe, "observe", false, "only show the output of EXEC, beside others (on a server)")
	cmd.MarkFlagsMutuallyExclusive("interactive", "observe")
	cmd.Flags().StringVar(&shell, "shell", "", "the shell to start (/bin/bash, or /bin/sh where there is none)")
	detachKeysFlag(cmd.Flags(), &keys)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		return a.with(ctx, false, func(on backend.Boxes) error {
			switch {
			case len(args) == 1 && observe:
				return errors.New("--observe needs EXEC, the id of a command that runs: 'sandbox ps' lists them")
			case len(args) == 1:
				return a.shell(ctx, on, args[0], shell, keys)
			case observe:
				return a.observe(ctx, on, args[0], args[1])
			}
			return a.join(ctx, on, args[0], args[1], interactive, keys)
		})
	}
	return a.completeBoxes(cmd, 1, api.Running)
}

// shell starts a shell on our terminal.
func (a *app) shell(ctx context.Context, on backend.Boxes, ref, path string, keys keySequence) error {
	return a.attached(ctx, joining{
		box: ref, keys: keys,
		Exec: options.Exec{TTY: true, Stdin: true},
		start: func(o options.Exec) (backend.Command, error) {
			return on.Shell(ctx, ref, client.TerminalOptions{Shell: path, Cols: o.Cols, Rows: o.Rows, Term: o.Env["TERM"]})
		},
	})
}

// join joins a running command.
func (a *app) join(ctx context.Context, on backend.Boxes, ref, id string, interactive bool, keys keySequence) error {
	e, err := on.Exec(ctx, ref, id)
	if err != nil {
		return err
	}
	return a.attached(ctx, joining{
		Exec:  options.Exec{TTY: e.TTY, Stdin: interactive || e.TTY},
		start: func(options.Exec) (backend.Command, error) { return on.Join(ctx, ref, id, e.TTY) },
		leave: true, box: ref, keys: keys,
	})
}

// observe shows the output of a running command, which others have joined.
func (a *app) observe(ctx context.Context, on backend.Boxes, ref, id string) error {
	return a.attached(ctx, joining{
		start: func(options.Exec) (backend.Command, error) { return on.Observe(ctx, ref, id) },
		leave: true, box: ref,
	})
}
