package cli

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/client"
)

// completing bounds how long a shell waits for the names of boxes.
const completing = 2 * time.Second

// completeBoxes completes the first arguments of a verb, as many as most (0:
// all), with boxes that are of status (""; any).
func (a *app) completeBoxes(cmd *cobra.Command, most int, status api.BoxStatus) *cobra.Command {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.boxNames(cmd, status, ""), cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// completeCopy completes the arguments of cp with boxes.
func (a *app) completeCopy(cmd *cobra.Command) *cobra.Command {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.boxNames(cmd, api.Running, ":"), cobra.ShellCompDirectiveNoSpace
	}
	return cmd
}

// boxNames returns the names of boxes, or their ids, with a description. If it
// fails nothing is completed, because there is nowhere to print the failure.
func (a *app) boxNames(cmd *cobra.Command, status api.BoxStatus, suffix string) []cobra.Completion {
	ctx, stop := context.WithTimeout(cmd.Context(), completing)
	defer stop()
	var names []cobra.Completion
	_ = a.with(ctx, false, func(on backend.Boxes) error {
		all, err := on.Boxes(ctx, client.Filter{})
		for _, b := range all {
			if status == "" || status == b.Status {
				name := printable(cmp.Or(deref(b.Name), b.ID))
				names = append(names, cobra.CompletionWithDesc(name+suffix, string(b.Status)+" "+printable(deref(b.Image))))
			}
		}
		return err
	})
	return names
}
