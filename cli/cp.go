package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core/fault"
)

func (a *app) cpCmd() *cobra.Command {
	return a.completeCopy(&cobra.Command{
		Use:   "cp SRC DST",
		Short: "Copy files and directories into a box or out of it",
		Long: `Copy files and directories into a box or out of it. One side is BOX:PATH, with an
absolute path; the other is a path of this host, or - for standard input or
output. (A path with a colon in its first part needs a ./ in front.)

As with cp, a copy goes into DST where that is a directory or ends in "/", and
becomes DST otherwise. Modes are kept; the owner is the box's root, or you.
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
			return a.with(ctx, false, func(on boxes) error {
				c := copying{app: a, boxes: on}
				if to.box != "" {
					made, err := c.in(ctx, from.path, to)
					return joined(err, c.report(err, to.box, made))
				}
				return c.out(ctx, from, to.path)
			})
		},
	})
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
	boxes boxes
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
		return c.boxes.Upload(ctx, to.box, client.Upload{Dest: to.path, Name: "stdin", Tar: tar}, c.In)
	}
	st, err := os.Stat(from)
	if err != nil {
		return api.Uploaded{}, hostFailure(err)
	}
	if st.IsDir() {
		return c.dirIn(ctx, from, to)
	}
	if !st.Mode().IsRegular() {
		return api.Uploaded{}, fault.New(fault.InvalidArgument, "%s is neither a file nor a directory", from)
	}
	f, err := os.Open(from)
	if err != nil {
		return api.Uploaded{}, hostFailure(err)
	}
	defer f.Close()
	mode := int(st.Mode().Perm())
	return c.boxes.Upload(ctx, to.box, client.Upload{Dest: to.path, Name: filepath.Base(from), Mode: &mode}, f)
}

// dirIn copies a directory into a box, as a tar.
func (c copying) dirIn(ctx context.Context, from string, to place) (api.Uploaded, error) {
	name, err := baseName(from)
	if err != nil {
		return api.Uploaded{}, err
	}
	dest := to.path
	into, err := c.isDir(ctx, to)
	if err != nil {
		return api.Uploaded{}, err
	}
	if into || strings.HasSuffix(dest, "/") {
		dest = path.Join(dest, name)
	}
	r, w := io.Pipe()
	go func() { _ = w.CloseWithError(pack(w, from)) }()
	made, err := c.boxes.Upload(ctx, to.box, client.Upload{Dest: dest, Name: name + ".tar", Tar: true}, r)
	_ = r.CloseWithError(io.ErrClosedPipe) // ends pack, in case the upload stopped early
	return made, err
}

// isDir reports whether a path of a box is a directory.
func (c copying) isDir(ctx context.Context, at place) (bool, error) {
	d, err := c.boxes.Download(ctx, at.box, at.path, false)
	switch {
	case err == nil:
		return false, d.Close()
	case fault.Is(err, fault.IsDirectory):
		return true, nil
	case fault.Is(err, fault.FileNotFound), fault.Is(err, fault.InvalidArgument):
		return false, nil
	}
	return false, err
}

// out copies from a box to this host.
func (c copying) out(ctx context.Context, from place, to string) error {
	if to == "-" {
		return c.toOutput(ctx, from)
	}
	d, err := c.boxes.Download(ctx, from.box, from.path, true)
	if err != nil {
		return err
	}
	defer d.Close()
	made, err := unpack(d, to)
	if err != nil || !c.asJSON() {
		return err
	}
	return writeJSON(c.Out, map[string]any{"box": from.box, "path": from.path, "dest": made})
}

// toOutput writes the content of a file to standard output, or a directory as a
// tar.
func (c copying) toOutput(ctx context.Context, from place) error {
	d, err := c.boxes.Download(ctx, from.box, from.path, false)
	if fault.Is(err, fault.IsDirectory) {
		d, err = c.boxes.Download(ctx, from.box, from.path, true)
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

// baseName returns the name of a directory of this host, also of "." and "..".
func baseName(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", hostFailure(err)
	}
	return filepath.Base(abs), nil
}
