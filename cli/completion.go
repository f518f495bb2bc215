package cli

import (
	"bytes"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// bashWords is the line of cobra's script that needs the package bash-completion,
// and plainWords does without where that package is not there.
const (
	bashWords  = `    _get_comp_words_by_ref "$@" cur prev words cword` + "\n"
	plainWords = `    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    words=("${COMP_WORDS[@]}")
    cword=$COMP_CWORD
    cur=${words[cword]}
    prev=${words[cword-1]}
    declare -F _filedir >/dev/null 2>&1 || _filedir() { mapfile -t COMPREPLY < <(compgen -f -- "$cur"); }
`
)

// addCompletion adds cobra's verb completion. Its script for bash works without
// the package bash-completion too.
func (a *app) addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	bash, _, err := root.Find([]string{"completion", "bash"})
	if err != nil || bash.Name() != "bash" {
		return // cobra has no such verb any more; a test would tell
	}
	bash.RunE = func(cmd *cobra.Command, _ []string) error {
		describe := !cmd.Flags().Changed("no-descriptions")
		var script bytes.Buffer
		if err := cmd.Root().GenBashCompletionV2(&script, describe); err != nil {
			return err
		}
		_, err := io.WriteString(a.Out, strings.Replace(script.String(), bashWords, plainWords, 1))
		return err
	}
}
