package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"sandbox/core/local"
)

func (a *app) imagesPruneCmd() *cobra.Command {
	var unused bool
	cmd := &cobra.Command{
		Use:   "prune [--all]",
		Short: "Remove layers that nothing needs",
		Long: `Remove layers that no image and no box needs, and layers that were fetched in
part. What the steps of builds have made goes too, unless an image has it: it is made
again when it is next needed. With --all also the images that no box was made from.`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVarP(&unused, "all", "a", false, "also images that no box was made from")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		return a.withHost(ctx, func(host *local.Host) error {
			done, err := host.Images.Prune(ctx, unused)
			if a.asJSON() {
				return joined(writeJSON(a.Out, done), err)
			}
			for _, name := range done.Images {
				fmt.Fprintln(a.Out, printable(name))
			}
			fmt.Fprintf(a.Err, "freed %s in %d layers\n", size(done.Bytes), done.Layers)
			return err
		})
	}
	return cmd
}
