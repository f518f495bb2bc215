package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core/fault"
)

func (a *app) keysCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "List, create and remove a server's API keys",
		Args:  cobra.ArbitraryArgs, // so that noVerb words the error
		RunE:  noVerb,
	}
	cmd.AddCommand(a.keysLsCmd(), a.keysCreateCmd(), a.keysRmCmd())
	return cmd
}

func (a *app) keysLsCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the API keys, masked",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return a.withServer(ctx, func(c *client.Client) error {
				keys, err := c.Keys(ctx)
				return a.show(map[string]any{"keys": append([]api.Key{}, keys...)}, err, keyTable(keys))
			})
		},
	}
}

func keyTable(keys []api.Key) [][]any {
	table := rows(keys, func(k api.Key) []any {
		return []any{k.ID, k.Name, k.Key, strings.Join(k.Permissions, ","), when(&k.CreatedAt), cmp.Or(when(k.LastUsedAt), "never"), cmp.Or(when(k.ExpiresAt), "never")}
	})
	return append([][]any{{"ID", "NAME", "KEY", "PERMISSIONS", "CREATED", "LAST USED", "EXPIRES"}}, table...)
}

func (a *app) keysCreateCmd() *cobra.Command {
	var n client.NewKey
	var expires expiry
	cmd := &cobra.Command{
		Use:   "create NAME --permission P...",
		Short: "Create an API key and print it; it is not shown again",
		Long: `Create an API key and print it alone on standard output. It is not shown again.

Permissions: Boxes, Keys, observability.logs.query, observability.logs.write.
You can grant only permissions that your own key has.`,
		Example: "  sandbox keys create ci --permission Boxes --expires 30d",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringArrayVar(&n.Permissions, "permission", nil, "grant `P` (repeatable)")
	cmd.Flags().Var(&expires, "expires", "when it expires: a time, or a number of days from now as in 30d (default: never)")
	cmd.Flags().StringVar(&n.Environment, "environment", "", "environment that its logs permissions are for (default: the server's)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		n.Name, n.ExpiresAt = args[0], expires.at
		if len(n.Permissions) == 0 {
			return fault.New(fault.InvalidArgument, "a key needs a permission: add --permission, for example --permission Boxes")
		}
		ctx := cmd.Context()
		return a.withServer(ctx, func(c *client.Client) error {
			key, err := c.CreateKey(ctx, n)
			return a.show(key, err, [][]any{{key.Key}})
		})
	}
	return cmd
}

func (a *app) keysRmCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "rm ID...",
		Short: "Delete API keys; they stop working at once",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.withServer(ctx, func(c *client.Client) error {
				return a.eachRemoved(args, func(id string) (string, error) { return id, c.DeleteKey(ctx, id) })
			})
		},
	}
}

// expiry is the value of a flag that takes a time, or a number of days from now.
type expiry struct{ at *time.Time }

// String returns the time, in UTC.
func (e *expiry) String() string { return when(e.at) }

// Type returns the name of the value in --help.
func (e *expiry) Type() string { return "RFC3339|DAYSd" }

// maxDays is the largest number of days, a hundred years or so.
const maxDays = 36500

// Set parses the time or the number of days.
func (e *expiry) Set(arg string) error {
	if number, ok := strings.CutSuffix(arg, "d"); ok {
		days, err := strconv.Atoi(number)
		if err != nil || days < 1 || days > maxDays {
			return fmt.Errorf("%q is not a number of days from 1d to %dd", arg, maxDays)
		}
		at := time.Now().UTC().AddDate(0, 0, days).Truncate(time.Second)
		e.at = &at
		return nil
	}
	at, err := time.Parse(time.RFC3339, arg)
	if err != nil { // a date without a time is midnight UTC
		at, err = time.Parse(time.DateOnly, arg)
	}
	if err != nil {
		return fmt.Errorf("%q is neither a time such as 2030-01-31T00:00:00Z or 2030-01-31, nor a number of days such as 30d", arg)
	}
	e.at = &at
	return nil
}
