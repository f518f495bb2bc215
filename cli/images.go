package cli

import (
	"time"

	"github.com/spf13/cobra"

	"sandbox/core/image"
	"sandbox/core/local"
)

func (a *app) imagesCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "images",
		Short: "List, import and remove images",
		Args:  cobra.ArbitraryArgs, // or cobra words the error itself
		RunE:  noVerb,
	}
	cmd.AddCommand(a.imagesLsCmd(), a.imagesImportCmd(), a.imagesRmCmd())
	return cmd
}

func (a *app) imagesLsCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the images of the store",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), false, func(host *local.Host) error {
				images, err := host.Images.List()
				return joined(a.printImages(images), err)
			})
		},
	}
}

func (a *app) printImages(images []image.Info) error {
	if a.asJSON() {
		return writeJSON(a.Out, map[string]any{"images": append([]image.Info{}, images...)})
	}
	now := time.Now()
	table := rows(images, func(i image.Info) []any {
		return []any{i.Name, shortID(i.ID), size(i.Size), age(i.CreatedAt, now) + " ago"}
	})
	return writeTable(a.Out, append([][]any{{"NAME", "ID", "SIZE", "CREATED"}}, table...)...)
}

// shortID is as much of a digest as people compare.
func shortID(id string) string { return id[:min(len(id), len("sha256:")+12)] }

func (a *app) imagesRmCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "rm IMAGE...",
		Short: "Remove images; boxes that stand on them keep their files",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.with(ctx, false, func(host *local.Host) error {
				return a.eachRemoved(args, func(ref string) (string, error) {
					return ref, host.Images.Remove(ctx, ref)
				})
			})
		},
	}
}
