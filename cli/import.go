package cli

import (
	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
)

func (a *app) imagesImportCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "import NAME SOURCE",
		Short: "Make an image of a directory or an archive",
		Long: `Make an image of a directory or an archive and call it NAME.

SOURCE is a directory with a root file system, a tar of one (plain, gzip or zstd),
a docker-archive (what docker save writes), an OCI layout, or a tar of one. It is
on this host; a server is sent it as a tar.`,
		Example: "  mmdebstrap --variant=minbase bookworm debian.tar && sandbox images import debian debian.tar",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.with(ctx, false, func(on backend.Boxes) error {
				meter := newMeter(a.Err)
				info, err := on.ImportImage(ctx, args[0], args[1], meter.show)
				meter.clear()
				if err != nil {
					return err
				}
				return a.printMade(info)
			})
		},
	}
}

// printMade prints an image that was added to the store.
func (a *app) printMade(info api.Image) error {
	return a.show(info, nil, [][]any{{info.Name + " " + shortID(info.ID) + " " + size(info.Size)}})
}
