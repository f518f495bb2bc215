// Package outside_test builds and runs the programs of docs/go.md as a module
// outside this tree would.
package outside_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sandbox/test/leak"
	"sandbox/test/programs"
	"sandbox/test/rootfs"
)

func TestMain(m *testing.M) { leak.Main(m) }

// The home and the daemon's socket, as the document calls them.
const (
	usualHome = "/var/lib/sandbox"
	image     = "default"
)

// TestProcess uses core/local through a replace directive.
func TestProcess(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := module(t, program(t, "core/local"))
	own := ownModule(t)
	h.run(t, dir, "go", "mod", "edit", "-require="+own+"@v0.0.0", "-replace="+own+"="+programs.Tree())
	sums, err := os.ReadFile(filepath.Join(programs.Tree(), "go.sum"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600)) // go mod tidy would ask the network
	h.run(t, dir, "go", "build", "-mod=mod", "-o", "program", ".")
	if got := h.run(t, dir, "./program"); got != "from a box\nexit code 0\n" {
		t.Errorf("it printed %q", got)
	}
}

// TestDaemon uses client through a workspace. In a fresh module cache go fetches
// the go.mod files of the modules that ours needs, as it fetched those modules.
func TestDaemon(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.serve(t)
	dir := module(t, strings.ReplaceAll(program(t, "client"), usualHome, h.dir))
	h.run(t, dir, "go", "work", "init", ".", programs.Tree())
	h.run(t, dir, "go", "build", "-o", "program", ".")
	if got := h.run(t, dir, "./program"); got != "from a box\n" {
		t.Errorf("it printed %q", got)
	}
}

// TestHello runs the program of the README, as a program of this tree.
func TestHello(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	program := filepath.Join(t.TempDir(), "hello")
	h.run(t, programs.Tree(), "go", "build", "-o", program, "./examples_go/hello")
	if got := h.run(t, t.TempDir(), program); got != "print(2**100)\n" {
		t.Errorf("it printed %q", got)
	}
}

// program returns the program of the document that imports a package.
func program(t *testing.T, imports string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(programs.Tree(), "docs/go.md"))
	must(t, err)
	for _, m := range regexp.MustCompile("(?s)\n```go\n(.*?)```\n").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(m[1], "/"+imports+`"`) {
			return m[1]
		}
	}
	t.Fatalf("docs/go.md has no program that imports %s", imports)
	return ""
}

// module writes a module of one program and returns its directory.
func module(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/outside\n\ngo 1.26.0\n"), 0o600))
	return dir
}

// ownModule returns the path of this tree's module.
func ownModule(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m").Output()
	must(t, err)
	return strings.TrimSpace(string(out))
}

// home is a home with an image, and the environment of what uses it.
type home struct {
	dir string
	env []string
}

func newHome(t *testing.T) *home {
	t.Helper()
	dir, err := os.MkdirTemp("", "o") // short: a socket's name is
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &home{dir, append(os.Environ(), "SANDBOX_HOME="+dir, "SANDBOX_HELPER_DIR="+programs.Dir(), "GOFLAGS=", "GOWORK=")}
	root := rootfs.Busybox(t)
	rootfs.Python(t, root)
	h.run(t, dir, filepath.Join(programs.Dir(), "sandbox"), "--local", "images", "import", image, root)
	return h
}

// run runs a program to its end and returns what it printed.
func (h *home) run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, h.env
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, failed.String())
	}
	return string(out)
}

// serve runs a daemon on the home until the test ends.
func (h *home) serve(t *testing.T) {
	t.Helper()
	cmd := exec.Command(filepath.Join(programs.Dir(), "sandbox"), "serve", "--listen", "none")
	cmd.Env = h.env
	said, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		must(t, cmd.Process.Signal(os.Interrupt))
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "sandbox: ready") {
			return
		}
	}
	t.Fatal("the daemon ended")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
