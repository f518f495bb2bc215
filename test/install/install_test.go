// Package install_test installs the project into an empty directory, uses what
// is there as those do who install it, and uninstalls it.
package install_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const top = "../.."

// placed are files that `make install` must place below the prefix, and a text
// that each begins with or has near its beginning.
var placed = map[string]string{
	"bin/sandbox":                                  "\x7fELF",
	"libexec/sandbox/sandbox-shim":                 "\x7fELF",
	"libexec/sandbox/sandbox-init":                 "\x7fELF",
	"libexec/sandbox/sandbox-pod":                  "\x7fELF",
	"libexec/sandbox/sandbox-logs":                 "\x7fELF",
	"lib/libsandbox.a":                             "!<arch>",
	"lib/libsandbox.so":                            "\x7fELF",
	"include/sandbox.h":                            "sandbox",
	"include/sandbox.hpp":                          "sandbox/runtime.hpp",
	"include/sandbox/words.hpp":                    "not_found_error",
	"lib/cmake/Sandbox/SandboxConfig.cmake":        "Sandbox::sandbox",
	"lib/cmake/Sandbox/SandboxConfigVersion.cmake": "0.",
	"lib/pkgconfig/sandbox.pc":                     "prefix=",
	"share/doc/sandbox/openapi.yaml":               "openapi: 3",
	"share/doc/sandbox/LICENSE":                    "Apache License",
	"share/doc/sandbox/NOTICE":                     "",
	"share/man/man1/sandbox.1":                     ".TH \"SANDBOX\" 1",
	"share/man/man1/sandbox-images-import.1":       ".TH \"SANDBOX-IMAGES-IMPORT\" 1",
	"share/bash-completion/completions/sandbox":    "__start_sandbox",
	"share/zsh/site-functions/_sandbox":            "#compdef sandbox",
	"share/fish/vendor_completions.d/sandbox.fish": "complete -c sandbox",
}

func TestInstall(t *testing.T) { //nolint:paralleltest // both tests build the same tree
	prefix := filepath.Join(t.TempDir(), "prefix")
	makes(t, "install", "PREFIX="+prefix)
	for name, want := range placed {
		text, err := os.ReadFile(filepath.Join(prefix, name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s is not as it should be: %v", name, err)
		}
	}
	t.Run("command line", func(t *testing.T) {
		if out := run(t, nil, filepath.Join(prefix, "bin/sandbox"), "version"); !strings.Contains(out, "sandbox") {
			t.Errorf("got %q", out)
		}
	})
	t.Run("completion of bash", func(t *testing.T) {
		script := filepath.Join(prefix, "share/bash-completion/completions/sandbox")
		if out := run(t, nil, "bash", "--norc", "-c", `source "$1" && complete -p sandbox`, "bash", script); !strings.Contains(out, "__start_sandbox") {
			t.Errorf("got %q", out)
		}
	})
	t.Run("library", func(t *testing.T) { useLibrary(t, prefix) })
	makes(t, "uninstall", "PREFIX="+prefix)
	if left := files(t, prefix); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// What is installed below DESTDIR names the prefix alone.
func TestInstallBelowDestdir(t *testing.T) { //nolint:paralleltest // both tests build the same tree
	destdir := t.TempDir()
	makes(t, "install", "PREFIX=/opt/sandbox", "DESTDIR="+destdir)
	text, err := os.ReadFile(filepath.Join(destdir, "opt/sandbox/lib/pkgconfig/sandbox.pc"))
	if err != nil || !strings.HasPrefix(string(text), "prefix=/opt/sandbox\n") {
		t.Errorf("got %q, %v", text, err)
	}
	makes(t, "uninstall", "PREFIX=/opt/sandbox", "DESTDIR="+destdir)
	if left := files(t, destdir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// useLibrary builds a C program with the flags of the installed pkg-config, and
// runs it: it finds the library without the linker's cache.
func useLibrary(t *testing.T, prefix string) {
	program := filepath.Join(t.TempDir(), "version")
	err := os.WriteFile(program+".c", []byte(`#include <sandbox.h>
#include <stdio.h>
int main(void) { puts(sandbox_version()); return 0; }
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PKG_CONFIG_PATH="+prefix+"/lib/pkgconfig")
	flags := strings.Fields(run(t, env, "pkg-config", "--cflags", "--libs", "sandbox"))
	run(t, nil, "cc", append([]string{"-o", program, program + ".c"}, flags...)...)
	want := run(t, env, "pkg-config", "--modversion", "sandbox")
	if got := run(t, nil, program); got != want {
		t.Errorf("the program says %q, pkg-config %q", got, want)
	}
}

// makes runs make on the project.
func makes(t *testing.T, args ...string) {
	t.Helper()
	run(t, nil, "make", append([]string{"-C", top}, args...)...)
}

// run returns what a program printed, and ends the test if it fails.
func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = env
	out, err := cmd.Output()
	if err != nil {
		said := out
		if e := new(exec.ExitError); errors.As(err, &e) {
			said = append(said, e.Stderr...)
		}
		t.Fatalf("%s %v: %v\n%s", name, args, err, said)
	}
	return string(out)
}

// files returns the files below a directory.
func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
