package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Each command has a manual page with all of its help, in which nothing but the
// requests that we write begins with a dot.
func TestManual(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, errs, code := newHost(t).sandbox("man", dir); code != 0 {
		t.Fatalf("exit %d, %q", code, errs)
	}
	requests := regexp.MustCompile(`^\.(TH ".*|SH [A-Z ]+|TP|nf|fi)$`)
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		text, err := os.ReadFile(filepath.Join(dir, pageName(cmd)+".1"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, ".") && !requests.MatchString(strings.TrimSpace(line)) || strings.HasPrefix(line, "'") {
				t.Errorf("%s: %q is taken for a request", cmd.CommandPath(), line)
			}
		}
		for _, part := range []string{cmd.Short, cmd.Long, cmd.Example} {
			if !strings.Contains(string(text), roff(strings.TrimRight(part, "\n"))) {
				t.Errorf("%s: the page lacks %q", cmd.CommandPath(), part)
			}
		}
		for _, sub := range visible(cmd) {
			look(sub)
		}
	}
	look((&app{}).root())
	run, err := os.ReadFile(filepath.Join(dir, "sandbox-run.1"))
	if err != nil || !strings.Contains(string(run), "\n"+`\fB\-m, \-\-memory MIB|512m|1g\fR`+"\n") {
		t.Errorf("the page of run lacks a flag: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "sandbox-man.1")); err == nil {
		t.Error("a hidden verb has a page")
	}
}

func TestRoff(t *testing.T) {
	t.Parallel()
	if got, want := roff(".x\n'y \\n a-b"), "\\&.x\n\\(aqy \\en a\\-b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
