package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core/fault"
)

func (a *app) psCmd() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "ps [-a] BOX",
		Short: "List the commands that run in a box",
		Long: `List the commands that run in a box, newest first: those that run, exec and
attach started, also detached ones, but not the processes that these started.
With -a, commands that have ended are listed too, at most the last 1,024.`,
		Example: "  sandbox ps web\n  sandbox kill web exec_6fq2vknzwx5n4tsm7yde",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fault.New(fault.InvalidArgument, "name the box whose commands are to be listed; 'sandbox ls' lists the boxes")
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "list commands that have ended too")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		return a.with(ctx, false, func(on backend.Boxes) error {
			execs, err := on.Execs(ctx, args[0])
			if !all {
				execs = slices.DeleteFunc(execs, func(e api.Exec) bool { return e.Status != api.ExecRunning })
			}
			return a.show(map[string]any{"execs": append([]api.Exec{}, execs...)}, err, execTable(execs, time.Now()))
		})
	}
	return a.completeBoxes(cmd, 1, api.Running)
}

// execTable returns a row for each exec, below a head.
func execTable(execs []api.Exec, now time.Time) [][]any {
	table := rows(execs, func(e api.Exec) []any {
		var pid any = "-"
		if e.PID != nil {
			pid = *e.PID
		}
		return []any{e.ID, pid, e.Status, e.User, age(e.CreatedAt, now), strings.Join(e.Cmd, " ")}
	})
	return append([][]any{{"EXEC", "PID", "STATUS", "USER", "AGE", "COMMAND"}}, table...)
}
