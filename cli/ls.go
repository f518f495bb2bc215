package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/client"
	"sandbox/core/fault"
)

// lsFlags are the flags of ls.
type lsFlags struct {
	status  string
	filters []string
	format  string
	quiet   bool
}

func (a *app) lsCmd() *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the boxes, newest first",
		Long: `List the boxes, newest first: all of them, in any state.

--filter takes status=running|paused|stopped, name=TEXT (a part of the name) and
label=KEY or label=KEY=VALUE; a box must match all that are given.
--format takes a Go template over .ID, .Name, .Status, .Image, .CPUs,
.MemoryMiB, .CreatedAt, .Labels and the other members of a box.`,
		Example: `  sandbox ls --filter status=running --filter label=team=a
  sandbox ls --format '{{.ID}} {{.Name}}'`,
		Args: cobra.NoArgs,
	}
	fs := cmd.Flags()
	fs.VarP(&choice{&f.status, []string{string(api.Running), string(api.Paused), string(api.Stopped)}}, "status", "s", "only boxes that are running, paused or stopped")
	fs.StringArrayVar(&f.filters, "filter", nil, "only boxes that match `KEY=VALUE` (repeatable)")
	fs.StringVar(&f.format, "format", "", "print each box by this Go `TEMPLATE`")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "print ids alone")
	fs.BoolP("all", "a", true, "list stopped boxes too (they are always listed)")
	cmd.MarkFlagsMutuallyExclusive("format", "quiet")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.ls(cmd.Context(), f) }
	return cmd
}

func (a *app) ls(ctx context.Context, f lsFlags) error {
	match, err := f.match()
	if err != nil {
		return err
	}
	show, err := templateOf(f.format)
	if err != nil {
		return err
	}
	return a.with(ctx, false, func(on backend.Boxes) error {
		all, err := on.Boxes(ctx, client.Filter{Status: api.BoxStatus(f.status)})
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(b api.Box) bool { return !match(b) })
		if show != nil && !a.asJSON() {
			return a.printBy(show, all)
		}
		return a.printBoxes(all, f.quiet)
	})
}

// match returns what tells whether a box matches all filters. Errors:
// InvalidArgument.
func (f lsFlags) match() (func(api.Box) bool, error) {
	var tests []func(api.Box) bool
	for _, filter := range f.filters {
		key, value, ok := strings.Cut(filter, "=")
		switch {
		case ok && key == "status":
			tests = append(tests, func(b api.Box) bool { return string(b.Status) == value })
		case ok && key == "name":
			tests = append(tests, func(b api.Box) bool { return strings.Contains(deref(b.Name), value) })
		case ok && key == "label":
			name, want, valued := strings.Cut(value, "=")
			tests = append(tests, func(b api.Box) bool {
				has, ok := b.Labels[name]
				return ok && (!valued || has == want)
			})
		default:
			return nil, fault.New(fault.InvalidArgument, "--filter %q: want status=STATUS, name=TEXT, label=KEY or label=KEY=VALUE", filter)
		}
	}
	return func(b api.Box) bool {
		return !slices.ContainsFunc(tests, func(test func(api.Box) bool) bool { return !test(b) })
	}, nil
}

// listed is a box for a template: text in place of pointers, and docker's Names.
type listed struct {
	api.Box
	Name, Names, Image string
}

// templateOf parses the template of --format, in which \t stands for a tab. It
// returns nil if there is none. Errors: InvalidArgument.
func templateOf(format string) (*template.Template, error) {
	if format == "" {
		return nil, nil
	}
	t, err := template.New("--format").Parse(strings.ReplaceAll(format, `\t`, "\t"))
	return t, fault.Wrap(fault.InvalidArgument, err, "")
}

// printBy prints a line for each box.
func (a *app) printBy(t *template.Template, boxes []api.Box) error {
	for _, b := range boxes {
		var line strings.Builder
		name := deref(b.Name)
		if err := t.Execute(&line, listed{b, name, name, cmp.Or(deref(b.Image), deref(b.RootfsPath))}); err != nil {
			return fault.Wrap(fault.InvalidArgument, err, "")
		}
		cells := strings.Split(line.String(), "\t")
		for i := range cells {
			cells[i] = printable(cells[i])
		}
		if _, err := fmt.Fprintln(a.Out, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printBoxes(boxes []api.Box, quiet bool) error {
	switch {
	case a.asJSON():
		return writeJSON(a.Out, map[string]any{"boxes": boxes})
	case quiet:
		return writeTable(a.Out, rows(boxes, func(b api.Box) []any { return []any{b.ID} })...)
	}
	now := time.Now()
	table := rows(boxes, func(b api.Box) []any {
		memory := fmt.Sprintf("%d MiB", b.MemoryMiB)
		root := cmp.Or(deref(b.Image), deref(b.RootfsPath))
		return []any{b.ID, cmp.Or(deref(b.Name), "-"), b.Status, root, b.CPUs, memory, age(b.CreatedAt, now), expires(b.ExpiresAt, now), health(b)}
	})
	head := []any{"ID", "NAME", "STATUS", "IMAGE", "CPUS", "MEMORY", "AGE", "EXPIRES", "HEALTH"}
	return writeTable(a.Out, append([][]any{head}, table...)...)
}

// deref returns the value that p points to, or the zero value if p is nil.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
