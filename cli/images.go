package cli

import (
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core/image"
	"sandbox/core/local"
)

func (a *app) imagesCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "images",
		Short: "List, pull, import, export, push and remove images",
		Args:  cobra.ArbitraryArgs, // so that noVerb words the error
		RunE:  noVerb,
	}
	cmd.AddCommand(a.imagesLsCmd(), a.imagesPullCmd(), a.imagesImportCmd(), a.exportCmd(), a.imagesPushCmd(), a.imagesInspectCmd(), a.imagesRmCmd(), a.imagesPruneCmd())
	return cmd
}

func (a *app) imagesLsCmd() *cobra.Command {
	var aliases bool
	cmd := &cobra.Command{
		Use:   "ls [--aliases]",
		Short: "List the images of the store, or the aliases",
		Long: `List the images of the store, or the aliases: short names that stand for
references. The table [aliases] in config.toml, in the directory that SANDBOX_HOME
names, adds to the built-in ones and replaces them. An image that was imported
under the name of an alias comes first.`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&aliases, "aliases", false, "list the aliases")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		if aliases {
			return a.withHost(ctx, func(host *local.Host) error { return a.printAliases(host.Images) })
		}
		return a.with(ctx, false, func(on backend.Boxes) error {
			images, err := on.Images(ctx)
			return joined(a.printImages(images), err)
		})
	}
	return cmd
}

// printAliases prints the aliases, each with the image of the store that it names
// now.
func (a *app) printAliases(images *image.Store) error {
	aliases := images.Aliases()
	if a.asJSON() {
		return writeJSON(a.Out, map[string]any{"aliases": aliases})
	}
	table := [][]any{{"ALIAS", "REFERENCE", "IN THE STORE"}}
	for _, alias := range slices.Sorted(maps.Keys(aliases)) {
		have := "-"
		if info, err := images.Inspect(alias); err == nil {
			have = info.Name
		}
		table = append(table, []any{alias, aliases[alias], have})
	}
	return writeTable(a.Out, table...)
}

func (a *app) printImages(images []api.Image) error {
	if a.asJSON() {
		return writeJSON(a.Out, map[string]any{"images": append([]api.Image{}, images...)})
	}
	now := time.Now()
	table := rows(images, func(i api.Image) []any {
		return []any{i.Name, shortID(i.ID), size(i.Size), age(i.CreatedAt, now) + " ago"}
	})
	return writeTable(a.Out, append([][]any{{"NAME", "ID", "SIZE", "CREATED"}}, table...)...)
}

// shortID shortens a digest to what people compare.
func shortID(id string) string { return id[:min(len(id), len("sha256:")+12)] }

func (a *app) imagesRmCmd() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "rm [-f] IMAGE...",
		Short: "Remove images; boxes made from them keep their files",
		Long: `Remove images. An image that boxes were made from, or that another alias than
the one given stands for, is removed only with --force. Boxes keep their files.`,
		Args: cobra.MinimumNArgs(1),
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "also images that boxes or aliases use")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		return a.with(ctx, false, func(on backend.Boxes) error {
			return a.eachRemoved(args, func(ref string) (string, error) {
				return ref, on.RemoveImage(ctx, ref, force)
			})
		})
	}
	return cmd
}
