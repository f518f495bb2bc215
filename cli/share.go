package cli

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core/fault"
)

func (a *app) shareCmd() *cobra.Command {
	expires := lifetime(api.DefaultShareSeconds)
	cmd := a.completeBoxes(&cobra.Command{
		Use:   "share [--expires TIME] BOX PORT",
		Short: "Make a link to a port of a box, for people without a key",
		Long: `Print a link that leads to a program that listens on a TCP port of a box. Who has
it needs no key, and reaches this port of this box alone, until the link expires
or the box is removed.`,
		Args: cobra.ExactArgs(2),
	}, 1, "")
	cmd.Flags().Var(&expires, "expires", "how long the link lasts, as 90s, 10m, 1h or 30d, which is the most")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		port, err := strconv.Atoi(args[1])
		if err != nil || expires == 0 {
			return fault.New(fault.InvalidArgument, "want a number of a port, and a time that ends")
		}
		return a.withServer(cmd.Context(), func(c *client.Client) error {
			link, err := c.Share(cmd.Context(), args[0], port, time.Duration(expires)*time.Second)
			return a.show(link, err, [][]any{{link.URL}})
		})
	}
	return cmd
}
