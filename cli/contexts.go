package cli

import (
	"context"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core/options"
)

func (a *app) contextsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "contexts",
		Short: "Make, list, restart and remove the contexts that run code",
		Long: `Make, list, restart and remove the contexts of a box, which 'sandbox code' runs
code in. A context is a process of a language, and keeps what code defines. The
one that a language has of its own is called as the language is, and made when
code is run.`,
		Args: cobra.ArbitraryArgs, // so that noVerb words the error
		RunE: noVerb,
	}
	cmd.AddCommand(a.contextsLsCmd(), a.contextsCreateCmd(),
		a.contextVerb("restart", "Have a context forget what code has defined", backend.Boxes.RestartCodeContext),
		a.contextVerb("interrupt", "Interrupt the code that a context runs", backend.Boxes.InterruptCode),
		a.contextVerb("rm", "End a context with all of its processes", removeContext))
	return cmd
}

func removeContext(on backend.Boxes, ctx context.Context, ref, id string) (api.CodeContext, error) {
	return api.CodeContext{ID: id}, on.RemoveCodeContext(ctx, ref, id)
}

// contextVerb returns a command about one context, whose id it prints.
func (a *app) contextVerb(verb, short string, do func(on backend.Boxes, ctx context.Context, ref, id string) (api.CodeContext, error)) *cobra.Command {
	cmd := &cobra.Command{Use: verb + " BOX CONTEXT", Short: short, Args: cobra.ExactArgs(2)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.with(cmd.Context(), false, func(on backend.Boxes) error {
			about, err := do(on, cmd.Context(), args[0], args[1])
			return a.printContext(about, err)
		})
	}
	return a.completeBoxes(cmd, 1, api.Running)
}

func (a *app) printContext(about api.CodeContext, err error) error {
	row := []any{about.ID}
	if err == nil && about.ExecID == "" { // it was removed
		return writeTable(a.Out, row)
	}
	return a.show(about, err, [][]any{row})
}

func (a *app) contextsCreateCmd() *cobra.Command {
	var o options.CodeContext
	var language string
	var env envFlags
	cmd := &cobra.Command{Use: "create [FLAGS] BOX", Short: "Make a context and print its id", Args: cobra.ExactArgs(1)}
	fs := cmd.Flags()
	fs.StringVarP(&language, "language", "l", string(api.Python), "python, javascript or bash")
	fs.StringVarP(&o.WorkingDir, "workdir", "w", "", "working directory")
	fs.StringVarP(&o.User, "user", "u", "", "user: a name or id, with :group if wanted")
	env.register(fs)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		o.Language = api.Language(language)
		if o.Env, err = env.env(); err != nil {
			return err
		}
		return a.with(cmd.Context(), false, func(on backend.Boxes) error {
			return a.printContext(on.CreateCodeContext(cmd.Context(), args[0], o))
		})
	}
	return a.completeBoxes(cmd, 1, api.Running)
}

func (a *app) contextsLsCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "ls BOX", Short: "List the contexts of a box", Args: cobra.ExactArgs(1)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.with(cmd.Context(), false, func(on backend.Boxes) error {
			all, err := on.CodeContexts(cmd.Context(), args[0])
			table := rows(all, func(c api.CodeContext) []any {
				return []any{c.ID, c.Language, c.User, c.WorkingDir, when(&c.CreatedAt), c.ExecID}
			})
			return a.show(map[string]any{"contexts": all}, err, append([][]any{{"CONTEXT", "LANGUAGE", "USER", "DIRECTORY", "CREATED", "EXEC"}}, table...))
		})
	}
	return a.completeBoxes(cmd, 1, api.Running)
}
