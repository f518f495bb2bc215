package c_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// strict are the warnings under which sandbox.hpp is clean.
var strict = []string{"-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"}

// standards are the compilers and the versions of C++ that the header is for.
var standards = []struct{ compiler, standard string }{
	{"g++", "c++17"}, {"g++", "c++20"}, {"g++", "c++23"}, {"clang++", "c++17"}, {"clang++", "c++20"}, {"clang++", "c++2b"},
}

// TestCPPWarnings compiles what uses the header, and once each of its parts alone.
func TestCPPWarnings(t *testing.T) {
	t.Parallel()
	parts, err := filepath.Glob(root + "/include/sandbox/*.hpp")
	if err != nil || len(parts) == 0 {
		t.Fatal("no headers: ", err)
	}
	for _, part := range parts {
		checkSyntax(t, "g++", "c++17", part)
	}
	for _, s := range standards {
		t.Run(s.compiler+" "+s.standard, func(t *testing.T) {
			t.Parallel()
			checkSyntax(t, s.compiler, s.standard, "programs/objects.cpp")
			checkSyntax(t, s.compiler, s.standard, "programs/misuse.cpp")
			checkSyntax(t, s.compiler, s.standard, "programs/code.cpp")
			checkSyntax(t, s.compiler, s.standard, "programs/build.cpp")
		})
	}
}

func checkSyntax(t *testing.T, compiler, standard, source string) {
	t.Helper()
	args := append([]string{"-std=" + standard, "-fsyntax-only", "-x", "c++", "-I", root + "/include"}, strict...)
	run(t, exec.Command(compiler, append(args, source)...))
}

// TestCPPPrograms runs each program under the sanitizers, on a home and on a
// server: it succeeds and writes nothing.
func TestCPPPrograms(t *testing.T) {
	t.Parallel()
	for _, p := range []struct{ name, standard string }{{"objects", "c++17"}, {"objects", "c++23"}, {"misuse", "c++17"}, {"code", "c++17"}, {"build", "c++17"}} {
		t.Run(p.name+" "+p.standard, func(t *testing.T) {
			t.Parallel()
			program := compileCPP(t, "programs/"+p.name+".cpp", p.standard)
			for _, onServer := range []bool{false, true} {
				h := newHost(t)
				cmd := h.commandCPP(t, program)
				if onServer {
					cmd.Env = append(cmd.Env, "SERVER="+h.serve(t).socket)
				}
				if out := run(t, cmd); out != "" {
					t.Errorf("on a server %v: it wrote %q", onServer, out)
				}
			}
		})
	}
}

// TestCPPExamples runs each example and wants what it says.
func TestCPPExamples(t *testing.T) {
	t.Parallel()
	for _, e := range []struct {
		name, standard, want string
		image                bool // it needs the image "default"
	}{
		{"hello", "c++17", "print('from a box: 2**100 =', 2**100)\n", true},
		{"streaming", "c++17", "hello\nnow\ninterrupted\nexit code 3\n", false},
		{"files", "c++17", "6 bytes went in\n1\n2\n3\n", false},
		{"errors", "c++17", `not found: no box "nobody"
a command that fails: exit code 1
the command can't be started: no-such-command: command not found, exit code 127
code 32: the command ran longer than its time limit and was killed
`, false},
		{"expected", "c++23", "no box \"nobody\"\n", false},
	} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			if e.image {
				h.importDefault(t)
			}
			program := compileCPP(t, root+"/bindings/cpp/examples/"+e.name+".cpp", e.standard)
			if got := run(t, h.commandCPP(t, program, h.rootfs, t.TempDir())); got != e.want {
				t.Errorf("got %s\nwant %s", got, e.want)
			}
		})
	}
}

// compileCPP builds a program with all warnings, under the sanitizers.
func compileCPP(t *testing.T, source, standard string) string {
	t.Helper()
	dir, err := library()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(source), ".cpp"))
	args := append([]string{"-std=" + standard, "-g", "-O1", "-I", root + "/include", "-o", program, source}, strict...)
	args = append(append(args, sanitizers[1:]...), "-L", dir, "-lsandbox", "-pthread", "-Wl,-rpath,"+dir)
	run(t, exec.Command("g++", args...)) //nolint:gosec // of the tables above
	return program
}

// commandCPP returns a program in the host's environment, where SHARE is a
// directory with a file in it.
func (h host) commandCPP(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	share := t.TempDir()
	if err := os.WriteFile(filepath.Join(share, "file"), []byte("shared\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := h.command(t, program, args...)
	cmd.Env = append(cmd.Env, "SHARE="+share)
	return cmd
}

// TestCPPInstalled builds the examples against an installed library, by CMake's
// find_package and by pkg-config, and runs one of each kind.
func TestCPPInstalled(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.importDefault(t)
	prefix := filepath.Join(t.TempDir(), "prefix")
	run(t, exec.Command("make", "-C", root, "install-cpp", "PREFIX="+prefix))
	built := t.TempDir()
	run(t, exec.Command("cmake", "-S", root+"/bindings/cpp/examples", "-B", built, "-DCMAKE_PREFIX_PATH="+prefix))
	run(t, exec.Command("cmake", "--build", built))
	flags := exec.Command("pkg-config", "--cflags", "--libs", "sandbox")
	flags.Env = append(os.Environ(), "PKG_CONFIG_PATH="+prefix+"/lib/pkgconfig")
	args := append([]string{"-std=c++17", "-o", built + "/hello_pkgconfig", root + "/bindings/cpp/examples/hello.cpp"}, strings.Fields(run(t, flags))...)
	run(t, exec.Command("g++", args...)) //nolint:gosec // of pkg-config
	dir, err := library()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hello", "hello_static", "hello_pkgconfig"} {
		cmd := h.commandCPP(t, filepath.Join(built, name))
		cmd.Env = append(cmd.Env, "SANDBOX_HELPER_DIR="+dir)
		if got, want := run(t, cmd), "print('from a box: 2**100 =', 2**100)\n"; got != want {
			t.Errorf("%s: got %s", name, got)
		}
	}
	if out, err := exec.Command("ldd", built+"/hello_static").CombinedOutput(); err != nil || strings.Contains(string(out), "libsandbox") {
		t.Errorf("the static one needs %s, %v", out, err)
	}
}
