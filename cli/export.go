package cli

import (
	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core/fault"
	"sandbox/core/image"
)

func (a *app) exportCmd() *cobra.Command {
	var how string
	cmd := &cobra.Command{
		Use:   "export [--compression zstd|gzip|none] IMAGE FILE|-",
		Short: "Write an image to a file that another host, podman or docker can read",
		Long: `Write an image to a file that another host, podman or docker can read: an OCI
archive, for 'sandbox images import', 'podman load' and 'docker load'. With - it is
written to standard output.

The same image always gives the same bytes. A file that is there is replaced once
the new one is whole.`,
		Example: `  sandbox export team/app:1 app.tar
  sandbox export --compression gzip team/app:1 - | ssh host podman load`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if args[1] == "-" && asTerminal(a.Out) != nil {
				return fault.New(fault.InvalidArgument, "an archive is not for a terminal: name a file, or lead the output to one")
			}
			return a.with(ctx, false, func(on backend.Boxes) error {
				meter := newMeter(a.Err)
				defer meter.clear()
				o := image.ExportOptions{Compression: api.Compression(how), Progress: meter.show}
				if args[1] == "-" {
					return on.ExportImage(ctx, args[0], a.Out, o)
				}
				return backend.ExportImageTo(ctx, on, args[0], args[1], o)
			})
		},
	}
	addCompression(cmd, &how)
	return cmd
}

// addCompression adds the flag that says how layers are compressed.
func addCompression(cmd *cobra.Command, how *string) {
	var words []string
	for _, word := range api.Compressions() {
		words = append(words, string(word))
	}
	*how = words[0]
	cmd.Flags().Var(&choice{value: how, allowed: words}, "compression", "how the layers are compressed")
}

func (a *app) imagesPushCmd() *cobra.Command {
	var as, how string
	cmd := &cobra.Command{
		Use:   "push [--as REFERENCE] [--compression zstd|gzip|none] IMAGE",
		Short: "Send an image to a registry",
		Long: `Send an image to the registry that its name begins with, or to the one that
REFERENCE names. Layers that the registry has are not sent, so a push that was
interrupted continues where it stopped.

Credentials are those of a pull: 'sandbox images pull --help' says which.`,
		Example: "  sandbox images push --as registry.example:5000/team/app:1 app",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.with(ctx, false, func(on backend.Boxes) error {
				meter := newMeter(a.Err)
				pushed, err := on.PushImage(ctx, args[0], image.PushOptions{As: as, Compression: api.Compression(how), Progress: meter.show})
				meter.clear()
				if err != nil {
					return err
				}
				return a.printPushed(pushed)
			})
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "the reference to push to; default the image's own name")
	addCompression(cmd, &how)
	return cmd
}

// printPushed prints an image that was sent to a registry.
func (a *app) printPushed(p api.Pushed) error {
	return a.show(p, nil, [][]any{{p.Reference + " " + p.Digest}})
}
