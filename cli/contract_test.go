package cli

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The contract lists all commands, and its rows about one name all of its flags and no others.
func TestContract(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/CONTRACT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## 6.")
	section, _, _ = strings.Cut(section, "\n## 7.")
	commands := map[string]*cobra.Command{}
	gather(commands, (&app{}).root())

	want, got := slices.Sorted(maps.Keys(commands)), listedPaths(section)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the contract lists\n%q, there are\n%q", got, want)
	}
	rows := contractRows(section)
	for path, cmd := range commands {
		for _, flag := range unnamed(path, cmd, rows) {
			t.Errorf("no row about %q names --%s", path, flag)
		}
	}
	for _, r := range rows {
		for _, flag := range r.unknown(commands) {
			t.Errorf("the row about %q names %s, which none of them has", r.about, flag)
		}
	}
}

// gather adds all commands below cmd by their paths, as "images ls".
func gather(commands map[string]*cobra.Command, cmd *cobra.Command) {
	for _, sub := range visible(cmd) {
		if !sub.IsAdditionalHelpTopicCommand() {
			commands[strings.TrimPrefix(sub.CommandPath(), "sandbox ")] = sub
			gather(commands, sub)
		}
	}
}

// listedPaths returns the commands of the contract's list, as "images ls".
func listedPaths(section string) []string {
	_, list, _ := strings.Cut(section, "\n`sandbox ")
	list, _, _ = strings.Cut(list, "`")
	var all []string
	for part := range strings.SplitSeq(list, "|") {
		name, subs, _ := strings.Cut(strings.TrimSpace(part), " (")
		all = append(all, name)
		for sub := range strings.FieldsFuncSeq(subs, func(r rune) bool { return strings.ContainsRune(", )", r) }) {
			all = append(all, name+" "+sub)
		}
	}
	return all
}

// contractRow is a row of a table of the contract, with the commands that it is about.
type contractRow struct {
	about []string
	text  string
}

// contractRows returns the rows whose first cell begins with a command, and the table
// of the daemon's flags as one row about serve.
func contractRows(section string) []contractRow {
	_, daemon, _ := strings.Cut(section, "\n| flag of `sandbox serve`")
	daemon, _, _ = strings.Cut(daemon, "\n\n")
	rows := []contractRow{{[]string{"serve"}, daemon}}
	for line := range strings.Lines(section) {
		if cell, ok := strings.CutPrefix(line, "| `"); ok {
			cell, _, _ = strings.Cut("`"+cell, " | ")
			if about := subjects(cell); about != nil {
				rows = append(rows, contractRow{about, line})
			}
		}
	}
	return rows
}

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	// verbWord is a word of a command, or several to choose from: query\|search.
	verbWord = regexp.MustCompile(`^[a-z][a-z-]*(\\\|[a-z-]+)*$`)
	longFlag = regexp.MustCompile(`--[a-z0-9][a-z0-9-]*`)
)

// subjects returns the commands that the code in a cell begins with.
func subjects(cell string) []string {
	var all []string
	for _, span := range codeSpan.FindAllStringSubmatch(cell, -1) {
		paths := []string{""}
		for _, w := range strings.Fields(span[1]) {
			if !verbWord.MatchString(w) {
				break
			}
			var longer []string
			for _, path := range paths {
				for one := range strings.SplitSeq(w, `\|`) {
					longer = append(longer, strings.TrimSpace(path+" "+one))
				}
			}
			paths = longer
		}
		if paths[0] != "" {
			all = append(all, paths...)
		}
	}
	return all
}

// unnamed returns the flags of a command that no row about it names, neither by name nor
// by letter. Those of completion are cobra's, and not looked at.
func unnamed(path string, cmd *cobra.Command, rows []contractRow) []string {
	if strings.HasPrefix(path, "completion") {
		return nil
	}
	var missing []string
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		names := func(r contractRow) bool {
			return slices.Contains(r.about, path) && (slices.Contains(longFlag.FindAllString(r.text, -1), "--"+f.Name) ||
				f.Shorthand != "" && regexp.MustCompile("[`[(]-"+f.Shorthand+`\b`).MatchString(r.text))
		}
		if !f.Hidden && !slices.ContainsFunc(rows, names) {
			missing = append(missing, f.Name)
		}
	})
	return missing
}

// unknown returns the flags that the row names and none of its commands has.
func (r contractRow) unknown(commands map[string]*cobra.Command) []string {
	return slices.DeleteFunc(longFlag.FindAllString(r.text, -1), func(flag string) bool {
		return slices.ContainsFunc(r.about, func(path string) bool {
			cmd := commands[path]
			return cmd != nil && cmd.Flag(flag[2:]) != nil
		})
	})
}
