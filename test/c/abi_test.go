package c_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestABI wants the header, the library and the version script to name the
// same functions. That their types agree the compiler sees: capi includes the
// header.
func TestABI(t *testing.T) {
	t.Parallel()
	dir, err := library()
	if err != nil {
		t.Fatal(err)
	}
	lib, err := elf.Open(filepath.Join(dir, "libsandbox.so"))
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()

	declared := names(run(t, exec.Command("cc", "-E", "-P", root+"/include/sandbox.h")), `\b(sandbox_[a-z_]+)\s*\(`)
	script, err := os.ReadFile(root + "/capi/exports.map")
	if err != nil {
		t.Fatal(err)
	}
	listed := names(string(script), `(?m)^\s+(sandbox_[a-z_]+);`)
	exported := exports(t, lib)
	if len(declared) != 84 {
		t.Errorf("the header declares %d functions, the contract 84", len(declared))
	}
	if !slices.Equal(declared, exported) {
		t.Errorf("declared %v\nexported %v", declared, exported)
	}
	if !slices.Equal(declared, listed) {
		t.Errorf("declared %v\nin exports.map %v", declared, listed)
	}
	if soname, err := lib.DynString(elf.DT_SONAME); err != nil || !slices.Equal(soname, []string{"libsandbox.so.0"}) {
		t.Errorf("SONAME is %v, %v", soname, err)
	}
	if needed, err := lib.ImportedLibraries(); err != nil || !slices.Equal(needed, []string{"libc.so.6"}) {
		t.Errorf("it needs %v, %v; want libc alone", needed, err)
	}
}

// names returns the first group of every match, sorted, each once.
func names(text, pattern string) []string {
	var list []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// exports returns all that the library lets others see but its version's name.
func exports(t *testing.T, lib *elf.File) []string {
	t.Helper()
	symbols, err := lib.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF && s.Section != elf.SHN_ABS {
			list = append(list, s.Name)
		}
	}
	slices.Sort(list)
	return list
}

// TestABIWithoutLibcontainer: its constructor would run in the host program.
func TestABIWithoutLibcontainer(t *testing.T) {
	t.Parallel()
	for pkg := range strings.FieldsSeq(run(t, exec.Command("go", "list", "-deps", root+"/capi"))) {
		if strings.Contains(pkg, "opencontainers/runc") || strings.Contains(pkg, "nsenter") {
			t.Errorf("the library links %s", pkg)
		}
	}
}

// TestABIHeaderAlone compiles the header by itself in each language.
func TestABIHeaderAlone(t *testing.T) {
	t.Parallel()
	for _, std := range []string{"c99", "c11", "c17", "c++11", "c++20"} {
		compiler, language := "cc", "c"
		if strings.HasPrefix(std, "c++") {
			compiler, language = "c++", "c++"
		}
		run(t, exec.Command(compiler, "-std="+std, "-pedantic", "-Wall", "-Wextra", "-Werror",
			"-fsyntax-only", "-x", language, root+"/include/sandbox.h"))
	}
}

// TestABIHeaderIsWatched: Go's build cache sees a header only beside the package.
func TestABIHeaderIsWatched(t *testing.T) {
	t.Parallel()
	if target, err := os.Readlink(root + "/capi/sandbox.h"); err != nil || target != "../include/sandbox.h" {
		t.Errorf("capi/sandbox.h leads to %q, %v", target, err)
	}
}
