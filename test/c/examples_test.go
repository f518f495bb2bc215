package c_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sandbox/test/rootfs"
)

// TestExamples builds each example as a user would, runs it and wants what it
// says.
func TestExamples(t *testing.T) {
	t.Parallel()
	examples := []struct {
		name, want string
		image      bool // it needs the image "default"; others take a directory
	}{
		{"streaming", "1000 lines on stdout, 1 on stderr, exit code 0\n", false},
		{"conversation", "42\n/tmp\nit goes\nexit code 3\n", false},
		{"files", "the box has all bytes\n", false},
		{"images", "layer 1 of 1 is there\nexit code 0\na box stands on it\n", false},
		{"lifecycle", "written\nstopped\nkept\nremoved\n", false},
		{"errors", `incomplete options: code 5, invalid box options JSON: rootfs is missing; env is missing; volumes is missing; network is missing; ports is missing
no such box: code 2, no box "nobody"
no such command: code 10, the command can't be started: no-such-command: command not found
  its exit code is 127
a command that fails: code 0
  its exit code is 1
a command that takes too long: code 32, the command ran longer than its time limit and was killed
a handle that was released: code 5, box is not a live handle
`, false},
		{"simple", "exit code 3, stdout: hello from box_\n", true},
		{"short", "print(2**100)\n", true},
		{"hello", "print('from a box: 2**100 =', 2**100)\n", true},
	}
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			args := []string{h.rootfs}
			if e.image {
				h.importDefault(t)
				args = nil
			}
			for how, flags := range map[string][]string{"plain": {"-std=c99"}, "with sanitizers, which look for leaks": sanitizers} {
				program := compile(t, root+"/examples_c/"+e.name+".c", flags...)
				if got := run(t, h.command(t, program, args...)); got != e.want {
					t.Errorf("%s: got %s\nwant %s", how, got, e.want)
				}
			}
		})
	}
}

// TestExampleOnServer: remote.c says the same on a home and on a server.
func TestExampleOnServer(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	program := compile(t, root+"/examples_c/remote.c", sanitizers...)
	on := func(env ...string) string {
		cmd := h.command(t, program, h.rootfs)
		cmd.Env = append(append(cmd.Env, "HOME="+t.TempDir()), env...)
		return run(t, cmd)
	}
	const want = "the same, wherever the box is\n"
	if got := on(); got != want {
		t.Errorf("on a home: %s", got)
	}
	if got := on("SANDBOX_HOME=/nowhere", "SANDBOX_REST_URL="+h.serve(t).socket); got != want {
		t.Errorf("on a server: %s", got)
	}
}

// TestStatic runs a program that has the library in it.
func TestStatic(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir, err := library()
	if err != nil {
		t.Fatal(err)
	}
	run(t, exec.Command("make", "-C", root, "build/libsandbox.a"))
	program := filepath.Join(t.TempDir(), "lifecycle")
	run(t, exec.Command("cc", "-std=c99", "-I", root+"/include", "-o", program, root+"/examples_c/lifecycle.c", root+"/build/libsandbox.a", "-pthread"))
	cmd := h.command(t, program, h.rootfs)
	cmd.Env = append(cmd.Env, "SANDBOX_HELPER_DIR="+dir)
	if got, want := run(t, cmd), "written\nstopped\nkept\nremoved\n"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// importDefault makes the host's root file system the image "default", with a
// python3 that only prints its program.
func (h host) importDefault(t *testing.T) {
	t.Helper()
	rootfs.Python(t, h.rootfs)
	dir, err := library()
	if err != nil {
		t.Fatal(err)
	}
	run(t, h.command(t, filepath.Join(dir, "sandbox"), "--local", "images", "import", "default", h.rootfs))
}

// TestInstalled builds a program against an installed library, as pkg-config says.
func TestInstalled(t *testing.T) {
	t.Parallel()
	if _, err := library(); err != nil {
		t.Fatal(err)
	}
	dest := t.TempDir()
	run(t, exec.Command("make", "-C", root, "install-lib", "DESTDIR="+dest, "PREFIX=/opt/sandbox"))
	lib := dest + "/opt/sandbox/lib"
	flags := exec.Command("pkg-config", "--cflags", "--libs", "sandbox")
	flags.Env = append(os.Environ(), "PKG_CONFIG_PATH="+lib+"/pkgconfig", "PKG_CONFIG_SYSROOT_DIR="+dest)
	program := filepath.Join(t.TempDir(), "version")
	source := program + ".c"
	text := "#include <sandbox.h>\n#include <stdio.h>\nint main(void) { return puts(sandbox_version()) < 0; }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, exec.Command("sh", "-c", `cc "$1" -o "$2" $3`, "sh", source, program, run(t, flags)))
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+lib)
	if got := run(t, cmd); got != "0.1.0\n" {
		t.Errorf("got %q", got)
	}
	if _, err := os.Stat(lib + "/libsandbox.so.0.1.0"); err != nil {
		t.Error(err)
	}
}
