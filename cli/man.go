package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandbox/core"
	"sandbox/core/fault"
)

// manCmd returns the hidden verb that `make install` calls.
func (a *app) manCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write a manual page of each command into a directory",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(cmd *cobra.Command, args []string) error { return writePages(cmd.Root(), args[0]) },
	}
}

// writePages writes the manual pages of a command and of all below it.
func writePages(cmd *cobra.Command, dir string) error {
	name := filepath.Join(dir, pageName(cmd)+".1")
	if err := os.WriteFile(name, []byte(page(cmd)), 0o644); err != nil { //nolint:gosec // everybody reads manuals
		return fault.Wrap(fault.InvalidArgument, err, "write the manual")
	}
	for _, sub := range visible(cmd) {
		if err := writePages(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

// visible returns the commands and help topics below a command.
func visible(cmd *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool { return c.Hidden || c.Name() == "help" })
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// page returns the manual page of a command in roff. The text of the help stands
// as it is: its lines are as long as a terminal's, and its tables are aligned.
func page(cmd *cobra.Command) string {
	var b strings.Builder
	name := pageName(cmd)
	fmt.Fprintf(&b, ".TH %q 1 \"\" \"sandbox %s\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(name), core.Version, roff(name), roff(cmd.Short))
	if !cmd.IsAdditionalHelpTopicCommand() {
		section(&b, "SYNOPSIS", roff(cmd.UseLine()))
	}
	verbatim(&b, "DESCRIPTION", cmd.Long)
	if subs := visible(cmd); len(subs) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range subs {
			entry(&b, pageName(sub)+"(1)", sub.Short)
		}
	}
	flags(&b, "OPTIONS", cmd.NonInheritedFlags())
	flags(&b, "OPTIONS OF ALL COMMANDS", cmd.InheritedFlags())
	verbatim(&b, "EXAMPLES", cmd.Example)
	if cmd.HasParent() {
		section(&b, "SEE ALSO", roff(pageName(cmd.Parent()))+"(1)")
	}
	return b.String()
}

func section(b *strings.Builder, title, text string) { fmt.Fprintf(b, ".SH %s\n%s\n", title, text) }

// verbatim writes a section whose lines stay as they are, if it has a text.
func verbatim(b *strings.Builder, title, text string) {
	if text = strings.TrimRight(text, "\n"); text != "" {
		section(b, title, ".nf\n"+roff(text)+"\n.fi")
	}
}

// entry writes one entry of a list.
func entry(b *strings.Builder, term, text string) {
	fmt.Fprintf(b, ".TP\n\\fB%s\\fR\n%s\n", roff(term), roff(text))
}

func flags(b *strings.Builder, title string, fs *pflag.FlagSet) {
	if !fs.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		term := "--" + f.Name
		if f.Shorthand != "" {
			term = "-" + f.Shorthand + ", " + term
		}
		entry(b, strings.TrimRight(term+" "+value, " "), usage)
	})
}

// roff escapes text: what begins a request at the beginning of a line, and the
// characters that roff would replace.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", "\\`", "^", `\(ha`, "~", `\(ti`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
