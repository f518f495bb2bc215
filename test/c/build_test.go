// Package c_test builds the C library and programs in C that use it, and runs
// them under the address and undefined-behaviour sanitizers.
package c_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sandbox/test/leak"
	"sandbox/test/rootfs"
)

const root = "../.."

// library builds the library and the programs once, and gives their directory.
// LIBSANDBOX_DIR names one to be tested instead.
var library = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("LIBSANDBOX_DIR"); dir != "" {
		return dir, nil
	}
	out, err := exec.Command("make", "-C", root, "programs", "build/libsandbox.so").CombinedOutput()
	if err != nil {
		return "", &buildError{"make", string(out), err}
	}
	return filepath.Abs(filepath.Join(root, "build"))
})

type buildError struct {
	what, output string
	err          error
}

func (e *buildError) Error() string { return e.what + ": " + e.err.Error() + "\n" + e.output }

// compile builds one program against the library and returns its path.
func compile(t *testing.T, source string, flags ...string) string {
	t.Helper()
	dir, err := library()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(source), ".c"))
	args := append([]string{"-g", "-O1", "-pedantic", "-Wall", "-Wextra", "-Werror", "-I", root + "/include", "-o", program, source}, flags...)
	args = append(args, "-Wl,--as-needed", "-L", dir, "-lsandbox", "-lpthread", "-lm", "-Wl,-rpath,"+dir)
	run(t, exec.Command("cc", args...))
	return program
}

var sanitizers = []string{"-std=gnu11", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"}

// run runs cmd, fails the test if it fails, and returns what it wrote.
func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out)
}

// host is what a program that makes boxes is run with: a home of its own, and
// a root file system.
type host struct{ home, rootfs string }

func newHost(t *testing.T) host {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("needs root: boxes are made of namespaces, mounts and cgroups")
	}
	return host{home: t.TempDir(), rootfs: rootfs.Busybox(t)}
}

// command returns a program in the host's environment, which has no profile of a server.
// LATE_HOME is a directory that the program may make its home while it runs. The leak
// checker finds what the library keeps; leaks.c counts what it is.
func (h host) command(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	dir, err := library()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "SANDBOX_HOME="+h.home, "HOME="+h.home, "LATE_HOME="+t.TempDir(),
		"ROOTFS="+h.rootfs, "LIBSANDBOX="+filepath.Join(dir, "libsandbox.so.0"),
		"ASAN_OPTIONS=detect_leaks=1", "UBSAN_OPTIONS=print_stacktrace=1")
	return cmd
}

func TestMain(m *testing.M) { leak.Main(m) }
