package cli

import (
	"github.com/spf13/cobra"

	"sandbox/backend"
)

func (a *app) imagesPullCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "pull IMAGE",
		Short: "Pull an image from its registry, or a newer version of it",
		Long: `Pull an image from its registry, also if the store has one of that name.
Layers that the store has are not fetched again, and a pull that was interrupted
continues where it stopped.

IMAGE is an alias ('sandbox images ls --aliases') or a reference, as debian:12,
host:5000/team/app or debian@sha256:...; without a host it is docker.io's.
Credentials are those of ~/.docker/config.json ('docker login' or 'podman
login' write it), the proxy that of HTTPS_PROXY: of the user who runs this, or
of the daemon's where one pulls.`,
		Example: "  sandbox images pull debian:stable-slim",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.with(ctx, false, func(on backend.Boxes) error {
				meter := newMeter(a.Err)
				info, err := on.Pull(ctx, args[0], meter.show)
				meter.clear()
				if err != nil {
					return err
				}
				return a.printMade(info)
			})
		},
	}
}
