package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// execFlags are the flags that run and exec share.
type execFlags struct {
	options.Exec
	timeout seconds
	keys    keySequence
}

func (f *execFlags) register(fs *pflag.FlagSet) {
	fs.SetInterspersed(false) // flags behind the first argument may be the command's own
	fs.BoolVarP(&f.Stdin, "interactive", "i", false, "pass standard input to the command")
	fs.BoolVarP(&f.TTY, "tty", "t", false, "run the command on a terminal")
	fs.Var(&f.timeout, "timeout", "end the command after this time (0: never)")
	f.keys = newKeySequence()
	detachKeysFlag(fs, &f.keys)
}

// exec returns the command that the flags and arguments ask for.
func (f *execFlags) exec(argv []string) (options.Exec, error) {
	o := f.Exec
	o.Cmd, o.Timeout = argv, time.Duration(f.timeout)
	return o, o.Check()
}

func (a *app) execCmd() *cobra.Command {
	var f execFlags
	var env envFlags
	var detach bool
	cmd := &cobra.Command{
		Use:   "exec [FLAGS] BOX -- CMD...",
		Short: "Run a command in a box",
		Long: `Run a command in a box and print its output.

The exit code is the command's own (128+N if signal N ended it); 125 means that
sandbox failed, not the command. Ctrl-C ends the command, or with -it
goes to the terminal of the command.`,
		Example: `  sandbox exec -it web -- bash
  echo hello | sandbox exec -i web -- cat`,
		Args:        cobra.MinimumNArgs(1),
		Annotations: map[string]string{runsCommand: "true"},
	}
	f.register(cmd.Flags())
	cmd.Flags().BoolVarP(&detach, "detach", "d", false, "print the exec's id and leave the command running")
	env.register(cmd.Flags())
	cmd.Flags().StringVarP(&f.WorkingDir, "workdir", "w", "", "working directory")
	cmd.Flags().StringVarP(&f.User, "user", "u", "", "user: a name or id, with :group if wanted")
	cmd.MarkFlagsMutuallyExclusive("detach", "interactive")
	cmd.MarkFlagsMutuallyExclusive("detach", "tty")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if f.Env, err = env.env(); err != nil {
			return err
		}
		ref, argv, err := split(cmd, args)
		if err != nil {
			return err
		}
		if ref == "" {
			return fault.New(fault.InvalidArgument, "no box is named before the command")
		}
		if len(argv) == 0 {
			return fault.New(fault.InvalidArgument, "no command is given: %s", cmd.UseLine())
		}
		o, err := f.exec(argv)
		if err != nil {
			return err
		}
		if err := a.checkTerminal(o); err != nil {
			return err
		}
		ctx := cmd.Context()
		return a.with(ctx, false, func(on backend.Boxes) error {
			if detach {
				return a.detached(ctx, on, ref, o)
			}
			return a.attached(ctx, joining{
				Exec: o, box: ref, keys: f.keys, start: func(o options.Exec) (backend.Command, error) { return on.Run(ctx, ref, o) },
			})
		})
	}
	return a.completeBoxes(cmd, 1, api.Running)
}

// split separates the box or image from the command: NAME -- CMD..., NAME CMD...,
// -- CMD... without a name, or NAME without a command.
func split(cmd *cobra.Command, args []string) (name string, argv []string, err error) {
	if cmd.ArgsLenAtDash() != 0 { // 0: there is no name in front of the dashes
		name, args = args[0], args[1:]
	}
	switch {
	case len(args) > 0 && args[0] == "--":
		args = args[1:]
	case len(args) > 0 && strings.HasPrefix(args[0], "-"):
		return "", nil, fault.New(fault.InvalidArgument, "%s after %q: write flags before it, and the command after --", args[0], name)
	}
	return name, args, nil
}

// detached starts a command and prints its id.
func (a *app) detached(ctx context.Context, on backend.Boxes, ref string, o options.Exec) error {
	e, err := on.StartExec(ctx, ref, o)
	if err != nil {
		return err
	}
	if a.asJSON() {
		return writeJSON(a.Out, e)
	}
	_, err = fmt.Fprintln(a.Out, printable(e.ID))
	return err
}
