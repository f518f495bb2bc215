package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/client"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/hostcopy"
)

func (a *app) cpCmd() *cobra.Command {
	var user string
	cmd := a.completeCopy(&cobra.Command{
		Use:   "cp [--user USER] SRC DST",
		Short: "Copy files and directories into a box or out of it",
		Long: `Copy files and directories into a box or out of it. One side is BOX:PATH, with an
absolute path; the other is a path of this host, or - for standard input or
output. (A path with a colon in its first part needs a ./ in front.)

As with cp, a copy goes into DST where that is a directory or ends in "/", and
becomes DST otherwise. Modes are kept; the owner is the box's root or USER, or you.
Standard input is the content of a file, or for a DST that ends in "/" a tar to
unpack there. Standard output gets the content of a file, or a directory as a
tar.`,
		Example: `  sandbox cp data.csv web:/data/
  sandbox cp web:/var/log ./log
  tar c src | sandbox cp - web:/work/`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, to := placeOf(args[0]), placeOf(args[1])
			if (from.box == "") == (to.box == "") {
				return fault.New(fault.InvalidArgument, "one of SRC and DST must be BOX:PATH, and the other a path of this host or -")
			}
			ctx := cmd.Context()
			return a.with(ctx, false, func(on backend.Boxes) error {
				c := copying{app: a, boxes: on, user: user}
				if to.box != "" {
					made, err := c.in(ctx, from.path, to)
					return joined(err, c.report(err, to.box, made))
				}
				return c.out(ctx, from, to.path)
			})
		},
	})
	cmd.Flags().StringVarP(&user, "user", "u", "", "user of the box whose rights count and who owns the copy in it; default the box's root")
	return cmd
}

// place is one side of a copy; box is "" if it is on this host.
type place struct{ box, path string }

func placeOf(arg string) place {
	box, rest, ok := strings.Cut(arg, ":")
	if !ok || strings.Contains(box, "/") || box == "" {
		return place{path: arg}
	}
	return place{box, rest}
}

// copying is one copy.
type copying struct {
	*app
	boxes backend.Boxes
	user  string // of the box; "" for its root
}

// report prints what was made, with -o json.
func (c copying) report(err error, box string, made api.Uploaded) error {
	if err != nil || !c.asJSON() {
		return nil
	}
	return writeJSON(c.Out, map[string]any{"box": box, "dest": made.Dest, "size": made.Size})
}

// in copies from this host into a box.
func (c copying) in(ctx context.Context, from string, to place) (api.Uploaded, error) {
	if from == "-" {
		tar := strings.HasSuffix(to.path, "/")
		return c.boxes.Upload(ctx, to.box, client.Upload{Dest: to.path, Name: "stdin", Tar: tar, User: c.user}, c.In)
	}
	return hostcopy.In(ctx, c.at(to), from, to.path, nil)
}

// out copies from a box to this host.
func (c copying) out(ctx context.Context, from place, to string) error {
	if to == "-" {
		return c.toOutput(ctx, from)
	}
	made, err := hostcopy.Out(ctx, c.at(from), from.path, to, nil)
	if err != nil || !c.asJSON() {
		return err
	}
	return writeJSON(c.Out, map[string]any{"box": from.box, "path": from.path, "dest": made})
}

// at returns the box of one side.
func (c copying) at(p place) hostcopy.Box {
	return backend.Files{On: c.boxes, Ref: p.box, User: c.user}
}

// toOutput writes the content of a file to standard output, or a directory as a
// tar.
func (c copying) toOutput(ctx context.Context, from place) error {
	d, err := c.boxes.Download(ctx, from.box, options.Download{Path: from.path, User: c.user})
	if fault.Is(err, fault.IsDirectory) {
		d, err = c.boxes.Download(ctx, from.box, options.Download{Path: from.path, Tar: true, User: c.user})
	}
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err := io.Copy(c.Out, d); err != nil {
		return fmt.Errorf("copy to standard output: %w", err)
	}
	return nil
}
