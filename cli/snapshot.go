package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core/options"
)

func (a *app) snapshotCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot BOX [NAME]",
		Short: "Make an image of the disk of a box as it is now",
		Long: `Make an image of the disk of a box as it is now, and print its name. Boxes are
made of it as of any image; NAME must be free, and without it one is made up.

A box that is stopped is done at once, whatever the size of its disk. One that
runs stands still while its disk is copied.`,
		Args: cobra.RangeArgs(1, 2),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.with(cmd.Context(), false, func(on backend.Boxes) error {
			taken, err := on.SnapshotBox(cmd.Context(), args[0], append(args, "")[1])
			return a.show(taken, err, [][]any{{taken.Name}})
		})
	}
	return a.completeBoxes(cmd, 1, "")
}

func (a *app) snapshotsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshots [BOX]",
		Short: "List the snapshots of boxes",
		Long: `List the snapshots of boxes, or of one: which image each stands on, what its own
layer adds to the disk, and the boxes that stand on it. 'sandbox images rm' and
'sandbox images prune' remove them.`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.with(cmd.Context(), false, func(on backend.Boxes) error {
			all, err := on.Snapshots(cmd.Context(), append(args, "")[0])
			return a.show(api.Snapshots{Snapshots: all}, err, describeSnapshots(all))
		})
	}
	return a.completeBoxes(cmd, 1, "")
}

// describeSnapshots returns snapshots as a table. A parent that is no snapshot, or gone, is
// shown by its id.
func describeSnapshots(all []api.SnapshotNode) [][]any {
	names := map[string]string{}
	now := time.Now()
	table := [][]any{{"NAME", "STANDS ON", "BOX", "ADDS", "CREATED", "BOXES ON IT"}}
	for _, n := range all {
		names[n.ID] = n.Name
		parent, ok := names[n.Parent]
		if !ok {
			parent = shortID(n.Parent)
		}
		table = append(table, []any{n.Name, parent, n.Box, size(n.AddedBytes), age(n.CreatedAt, now) + " ago", len(n.Boxes)})
	}
	return table
}

func (a *app) rollbackCmd() *cobra.Command {
	return a.completeBoxes(&cobra.Command{
		Use:   "rollback BOX SNAPSHOT",
		Short: "Give a box the disk that it had when a snapshot was taken",
		Long: `Give a box the disk that it had when a snapshot of it was taken. What was written
since is gone. The commands of a box that runs end, and it is started again.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), false, func(on backend.Boxes) error {
				b, err := on.RollbackBox(cmd.Context(), args[0], args[1])
				return a.show(b, err, [][]any{{args[0]}})
			})
		},
	}, 1, "")
}

func (a *app) cloneCmd() *cobra.Command {
	o := options.Clone{N: 1}
	var changed string
	cmd := a.completeBoxes(&cobra.Command{
		Use:   "clone [-n N] [--name-prefix NAME] [--snapshot SNAPSHOT] [--options JSON] BOX",
		Short: "Make boxes that are like a box, with its files",
		Long: `Make boxes that have the options of a box and the files of a snapshot of it, which
is taken now if none is named, and print their ids. The host's ports are chosen
anew. If one can't be made, none is.`,
		Args: cobra.ExactArgs(1),
	}, 1, "")
	fs := cmd.Flags()
	fs.IntVarP(&o.N, "number", "n", 1, "how many boxes")
	fs.StringVar(&o.NamePrefix, "name-prefix", "", "the names are this with -1, -2 and so on behind it")
	fs.StringVar(&o.Snapshot, "snapshot", "", "a snapshot of the box, instead of its disk as it is now")
	fs.StringVar(&changed, "options", "", `what the clones have otherwise, as {"memory_mib":256}`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if changed != "" {
			o.Options = []byte(changed)
		}
		return a.with(cmd.Context(), false, func(on backend.Boxes) error {
			boxes, err := on.CloneBox(cmd.Context(), args[0], o)
			return a.show(api.Clones{Boxes: boxes}, err, rows(boxes, func(b api.Box) []any { return []any{b.ID} }))
		})
	}
	return cmd
}

// diffLetters are docker's letters for changes.
var diffLetters = map[string]string{api.DiffAdded: "A", api.DiffChanged: "C", api.DiffRemoved: "D"}

func (a *app) diffCmd() *cobra.Command {
	var o options.Diff
	cmd := a.completeBoxes(&cobra.Command{
		Use:   "diff [--from SNAPSHOT] BOX",
		Short: "Show what has changed on the disk of a box",
		Long: `Show what was added (A), changed (C) and deleted (D) on the disk of a box since it
was made, or since a snapshot of it was taken.`,
		Args: cobra.ExactArgs(1),
	}, 1, "")
	cmd.Flags().StringVar(&o.From, "from", "", "a snapshot of the box")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.with(cmd.Context(), false, func(on backend.Boxes) error {
			return a.printDiff(cmd, on, args[0], o)
		})
	}
	return cmd
}

// printDiff prints all pages of a diff, in JSON as one document.
func (a *app) printDiff(cmd *cobra.Command, on backend.Boxes, ref string, o options.Diff) error {
	all := api.Changes{Changes: []api.Change{}}
	for {
		page, err := on.DiffBox(cmd.Context(), ref, o)
		if err != nil {
			return err
		}
		if a.asJSON() {
			all.Changes = append(all.Changes, page.Changes...)
		} else {
			for _, c := range page.Changes {
				if _, err := fmt.Fprintln(a.Out, diffLetters[c.Kind], printable(c.Path)); err != nil {
					return err
				}
			}
		}
		if page.NextPageToken == nil {
			break
		}
		o.PageToken = *page.NextPageToken
	}
	if a.asJSON() {
		return writeJSON(a.Out, all)
	}
	return nil
}
