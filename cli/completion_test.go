package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestBashCompletionAlone completes a verb in a bash without the package
// bash-completion. The program that it asks is one that always says the same.
func TestBashCompletionAlone(t *testing.T) {
	t.Parallel()
	script, errs, code := newHost(t).sandbox("completion", "bash")
	if code != 0 {
		t.Fatalf("exit %d, %q", code, errs)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"script": script, "sandbox": "#!/bin/sh\nprintf 'restart\\n:4\\n'\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	bash := exec.Command("bash", "--norc", "-c", `source ./script
COMP_WORDS=(./sandbox res) COMP_CWORD=1 COMP_LINE="./sandbox res" COMP_POINT=13 COMP_TYPE=9
__start_sandbox && echo "${COMPREPLY[@]}"`)
	bash.Dir = dir
	out, err := bash.Output() // stderr has what compopt says outside of a real completion
	if string(out) != "restart \n" && string(out) != "restart\n" {
		t.Errorf("completed %q, %v", out, err)
	}
}
