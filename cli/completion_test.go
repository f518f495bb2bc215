package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestCompletionScripts completes a verb in each shell, without settings or packages
// of its own. The program that the shell asks is one that always says the same.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for shell, c := range map[string]struct {
		args   []string
		script string
	}{
		"bash": {[]string{"--norc", "-c"}, `source ./script
COMP_WORDS=(./sandbox res) COMP_CWORD=1 COMP_LINE="./sandbox res" COMP_POINT=13 COMP_TYPE=9
__start_sandbox && echo "${COMPREPLY[@]}"`},
		"fish": {[]string{"--no-config", "-c"}, `set -x PATH . $PATH; source ./script; complete -C "sandbox res"`},
		// Only a zsh that has a terminal completes: rea""dy tells what it prints
		// from the echo of what is typed.
		"zsh": {[]string{"-f", "-c"}, `zmodload zsh/zpty; zpty shell 'zsh -f -i'
zpty -w shell 'autoload -U compinit; compinit -u -D; PATH=.:$PATH; source ./script; print rea""dy'
zpty -r -m shell line '*ready*'
zpty -n -w shell $'sandbox res\t'
zpty -r -m shell line '*sandbox restart*' && print restart`},
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			script, errs, code := newHost(t).sandbox("completion", shell)
			if code != 0 {
				t.Fatalf("exit %d, %q", code, errs)
			}
			dir := t.TempDir()
			for name, text := range map[string]string{"script": script, "sandbox": "#!/bin/sh\nprintf 'restart\\n:4\\n'\n"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a zsh that completes nothing waits for ever
			defer cancel()
			cmd := exec.CommandContext(ctx, shell, append(c.args, c.script)...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir)
			out, err := cmd.Output() // stderr has what compopt says outside of a real completion
			if got := string(bytes.TrimSpace(out)); got != "restart" {
				t.Errorf("completed %q, %v", got, err)
			}
		})
	}
}
