package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

func (a *app) filesCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "files",
		Short: "Look at the files of a box, and make, move and remove them",
		Long: `Look at the files of a box that runs, and make, move and remove them. No program
of the box is needed. Paths are absolute, and resolved inside the box with the
rights of a user of the box, by default its root. 'sandbox cp' copies files.`,
		Args: cobra.ArbitraryArgs, // so that noVerb words the error
		RunE: noVerb,
	}
	cmd.AddCommand(a.filesStatCmd(), a.filesLsCmd(), a.filesMkdirCmd(), a.filesMvCmd(), a.filesRmCmd(), a.filesWatchCmd())
	return cmd
}

// fileVerb returns a command about paths of a box. The box and the paths are its
// arguments, and user gets the value of --user.
func (a *app) fileVerb(use, short, long string, paths int, user *string, do func(cmd *cobra.Command, on backend.Boxes, box string, paths []string) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.ExactArgs(1 + paths)}
	cmd.Flags().StringVarP(user, "user", "u", "", "user whose rights count: a name or id, with :group if wanted; default the box's root")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.with(cmd.Context(), false, func(on backend.Boxes) error { return do(cmd, on, args[0], args[1:]) })
	}
	return a.completeBoxes(cmd, 1, api.Running)
}

func (a *app) filesStatCmd() *cobra.Command {
	var user string
	return a.fileVerb("stat [--user USER] BOX PATH", "Show what is known of a file", `Show what is known of a file, without its content. A symbolic link is not followed:
it is shown itself, with its target.`, 1, &user, func(cmd *cobra.Command, on backend.Boxes, box string, paths []string) error {
		f, err := on.StatFile(cmd.Context(), box, options.StatFile{Path: paths[0], User: user})
		return a.show(f, err, describeFile(f))
	})
}

// describeFile returns a file as a table. Members that are not set are left out.
func describeFile(f api.File) [][]any {
	return withoutEmpty([][]any{
		{"path", f.Path}, {"type", f.Type}, {"target", deref(f.Target)}, {"size", f.Size}, {"mode", f.Mode},
		{"owner", ownerOf(f.Owner, f.UID)}, {"group", ownerOf(f.Group, f.GID)}, {"modified", when(&f.ModifiedAt)},
	})
}

// ownerOf returns a name, or the id of who has none.
func ownerOf(name *string, id int) string {
	if name != nil {
		return *name
	}
	return strconv.Itoa(id)
}

func (a *app) filesLsCmd() *cobra.Command {
	var o options.ListFiles
	cmd := a.fileVerb("ls [--depth N] [--user USER] BOX PATH", "List the files in a directory", `List the files in a directory, in the order of their paths. With --depth the
directories in it are listed too, as many levels of them; links are not followed.`, 1, &o.User, func(cmd *cobra.Command, on backend.Boxes, box string, paths []string) error {
		o.Path = paths[0]
		if o.Depth < 1 {
			return fault.New(fault.InvalidArgument, "--depth must be from 1 to %d", options.MaxDepth)
		}
		files := []api.File{}
		for {
			page, err := on.ListFiles(cmd.Context(), box, o)
			if err != nil {
				return err
			}
			files = append(files, page.Files...)
			if page.NextPageToken == nil {
				return a.show(map[string]any{"files": files}, nil, fileTable(files))
			}
			o.PageToken = *page.NextPageToken
		}
	})
	cmd.Flags().IntVar(&o.Depth, "depth", 1, "levels of directories to list")
	return cmd
}

// fileTable returns a row for each file, below a head.
func fileTable(files []api.File) [][]any {
	table := rows(files, func(f api.File) []any {
		path := f.Path
		if f.Target != nil {
			path += " -> " + *f.Target
		}
		return []any{f.Type, f.Mode, ownerOf(f.Owner, f.UID), ownerOf(f.Group, f.GID), f.Size, when(&f.ModifiedAt), path}
	})
	return append([][]any{{"TYPE", "MODE", "OWNER", "GROUP", "SIZE", "MODIFIED", "PATH"}}, table...)
}

func (a *app) filesMkdirCmd() *cobra.Command {
	var user, mode string
	cmd := a.fileVerb("mkdir [--mode MODE] [--user USER] BOX PATH", "Make a directory", `Make a directory, and those that are missing on the way to it. One that is there
already is left as it is.`, 1, &user, func(cmd *cobra.Command, on backend.Boxes, box string, paths []string) error {
		o := options.MakeDirectory{Path: paths[0], User: user}
		if mode != "" {
			var bits api.FileMode
			if err := bits.UnmarshalText([]byte(mode)); err != nil {
				return fault.Wrap(fault.InvalidArgument, err, "--mode")
			}
			number := int(bits)
			o.Mode = &number
		}
		made, err := on.MakeDirectory(cmd.Context(), box, o)
		return a.show(made, err, [][]any{{made.Path}})
	})
	cmd.Flags().StringVarP(&mode, "mode", "m", "", "permission bits of the directory, octal; default 755")
	return cmd
}

func (a *app) filesMvCmd() *cobra.Command {
	var user string
	return a.fileVerb("mv [--user USER] BOX FROM TO", "Give a file another path", `Give a file or a directory another path. TO is the new path itself, also where it is
a directory: a file that has it is replaced, and a directory only by another one
and if it is empty. Nothing is copied, so both must be on one file system.`, 2, &user, func(cmd *cobra.Command, on backend.Boxes, box string, paths []string) error {
		f, err := on.MoveFile(cmd.Context(), box, options.MoveFile{From: paths[0], To: paths[1], User: user})
		return a.show(f, err, [][]any{{f.Path}})
	})
}

func (a *app) filesRmCmd() *cobra.Command {
	var o options.RemoveFile
	cmd := a.fileVerb("rm [-r] [--user USER] BOX PATH", "Remove a file or a directory", `Remove a file or a directory; one that is not empty with -r. No link is followed,
and what is mounted below a directory, such as a volume, is not removed.`, 1, &o.User, func(cmd *cobra.Command, on backend.Boxes, box string, paths []string) error {
		o.Path = paths[0]
		removed, err := on.RemoveFile(cmd.Context(), box, o)
		return a.show(removed, err, [][]any{{removed.Path}})
	})
	cmd.Flags().BoolVarP(&o.Recursive, "recursive", "r", false, "remove a directory with all that is in it")
	return cmd
}

func (a *app) filesWatchCmd() *cobra.Command {
	var o options.WatchFiles
	cmd := a.fileVerb("watch [-r] [--user USER] BOX PATH", "Print what changes in a directory", `Print what changes in a directory, as it happens: create, modify, remove, rename and
attributes, each with the path. With -r all directories below it are watched too.
"overflow" says that more happened at once than could be told. It ends with the
directory and with the box.`, 1, &o.User, func(cmd *cobra.Command, on backend.Boxes, box string, paths []string) error {
		o.Path = paths[0]
		watch, err := on.WatchFiles(cmd.Context(), box, o)
		if err != nil {
			return err
		}
		defer func() { _ = watch.Close() }()
		return a.printEvents(cmd.Context(), watch)
	})
	cmd.Flags().BoolVarP(&o.Recursive, "recursive", "r", false, "watch all directories below it too")
	return cmd
}

// printEvents prints one event a line, until the last one. Errors: that of the
// watch.
func (a *app) printEvents(ctx context.Context, watch *core.FileWatch) error {
	lines := json.NewEncoder(a.Out)
	lines.SetEscapeHTML(false)
	for {
		e, err := watch.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && a.asJSON() {
			err = lines.Encode(e)
		} else if err == nil {
			_, err = fmt.Fprintln(a.Out, eventLine(e))
		}
		if err != nil {
			return err
		}
		if e.Reason == api.WatchFailed {
			return fault.New(fault.Engine, "the watch has ended: %s", e.Message)
		}
	}
}

// eventLine returns an event as people read it.
func eventLine(e api.FileEvent) string {
	words := []string{string(e.Type)}
	if e.From != "" {
		words = append(words, e.From, "->")
	}
	for _, word := range []string{e.Path, string(e.Reason)} {
		if word != "" {
			words = append(words, word)
		}
	}
	return printable(strings.Join(words, " "))
}
