package tree_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandbox/core/build/tree"
	"sandbox/core/fault"
)

// files are those of the context of the tests. A value that begins with "-> " is a link.
var files = map[string]string{
	"recipe": "FROM a", "a.go": "a", "b.go": "b", "dir/c.go": "c", "dir/deep/d.txt": "d", "dir/deep/e.txt": "e",
	"in": "-> dir/deep", "absolute": "-> /dir", "out": "-> ../../../../etc", "etc/passwd": "ours", "loop": "-> loop", "hidden/f": "f", "hidden/kept": "k",
	".dockerignore": "# what is not sent\nhidden/*\n!hidden/kept\n**/e.txt\nrecipe\n",
}

// fill makes the files in a directory.
func fill(t testing.TB, dir string, all map[string]string) {
	t.Helper()
	for name, text := range all {
		at := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			err = errors.Join(err, os.Symlink(target, at))
		} else {
			err = errors.Join(err, os.WriteFile(at, []byte(text), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// both are the two ways to the tree of the same files.
var both = map[string]func(t testing.TB, all map[string]string) (*tree.Tree, error){
	"directory": func(t testing.TB, all map[string]string) (*tree.Tree, error) {
		dir := t.TempDir()
		fill(t, dir, all)
		return tree.Open(t.Context(), dir)
	},
	"tar": func(t testing.TB, all map[string]string) (*tree.Tree, error) {
		return readTar(t, func(tw *tar.Writer) error {
			for name, text := range all {
				h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}
				if target, ok := strings.CutPrefix(text, "-> "); ok {
					h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, target, 0
					text = ""
				}
				if err := tw.WriteHeader(h); err != nil {
					return err
				}
				if _, err := io.WriteString(tw, text); err != nil {
					return err
				}
			}
			return nil
		})
	},
}

// readTar returns the tree of a tar.
func readTar(t testing.TB, write func(*tar.Writer) error) (*tree.Tree, error) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "tar"))
	if err != nil {
		t.Fatal(err)
	}
	tw := tar.NewWriter(f)
	if err := errors.Join(write(tw), tw.Close()); err != nil {
		t.Fatal(err)
	}
	made, _, err := tree.Read(t.Context(), f, "recipe", 100)
	if err != nil {
		_ = f.Close()
	}
	return made, err
}

func TestTree(t *testing.T) {
	t.Parallel()
	for name, open := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, err := open(t, files)
			if err != nil {
				t.Fatal(err)
			}
			defer made.Close()
			for pattern, want := range map[string]string{
				"a.go": "[a.go]", "*.go": "[a.go b.go]", "/dir/*/*.txt": "[dir/deep/d.txt]", "*/deep": "[absolute/deep dir/deep]", "in/d.txt": "[in/d.txt]",
				"../../a.go": "[a.go]", "absolute/c.go": "[absolute/c.go]", "out/passwd": "[out/passwd]", ".": "[]",
				"hidden/*": "[hidden/kept]", "recipe": "file_not_found", "none": "file_not_found", "*.c": "file_not_found", "a.go/x": "file_not_found", "[": "invalid_argument",
			} {
				got, err := made.Match(pattern)
				found := fmt.Sprint(got)
				if err != nil {
					found = fault.Of(err).Kind.String()
				}
				if found != want {
					t.Errorf("%s: got %s, want %s", pattern, found, want)
				}
			}
			if f, err := made.Find("out/passwd"); err != nil || text(t, made, f) != "ours" {
				t.Errorf("a link out of the context leads to %+v, %v", f, err)
			}
			if _, err := made.Find("loop"); !fault.Is(err, fault.InvalidArgument) {
				t.Errorf("a link to itself: %v", err)
			}
		})
	}
}

func text(t *testing.T, from *tree.Tree, f *tree.File) string {
	t.Helper()
	r, err := from.Open(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// A digest depends on contents, modes and names, and not on times nor on how the files
// came.
func TestDigest(t *testing.T) {
	t.Parallel()
	digest := func(open func(testing.TB, map[string]string) (*tree.Tree, error), all map[string]string, name string) string {
		made, err := open(t, all)
		if err != nil {
			t.Fatal(err)
		}
		defer made.Close()
		f, err := made.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := made.Digest(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	base := map[string]string{"recipe": "", "d/a": "1", "d/b": "2", "e/a": "1", "e/b": "2"}
	want := digest(both["directory"], base, "d")
	for what, got := range map[string]string{
		"the same": digest(both["directory"], base, "d"), "a tar": digest(both["tar"], base, "d"), "another place": digest(both["tar"], base, "e"),
	} {
		if got != want {
			t.Errorf("%s has another digest", what)
		}
	}
	for what, all := range map[string]map[string]string{
		"content": {"d/a": "1", "d/b": "3"}, "name": {"d/a": "1", "d/c": "2"}, "one more": {"d/a": "1", "d/b": "2", "d/c": ""}, "a link": {"d/a": "1", "d/b": "-> 2"}, "moved": {"d/a": "12", "d/b": ""},
	} {
		if digest(both["directory"], all, "d") == want {
			t.Errorf("%s makes no difference", what)
		}
	}
	dir := t.TempDir()
	fill(t, dir, base)
	if err := os.Chmod(filepath.Join(dir, "d/a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if digest(func(testing.TB, map[string]string) (*tree.Tree, error) { return tree.Open(t.Context(), dir) }, nil, "d") == want {
		t.Error("a mode makes no difference")
	}
}

// What Pack writes is the same tree to Read, with the recipe beside it.
func TestPack(t *testing.T) {
	t.Parallel()
	made, err := both["directory"](t, files)
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	var sent bytes.Buffer
	if err := made.Pack(t.Context(), []byte("FROM b"), &sent); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "tar")
	if err := os.WriteFile(name, sent.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	got, text, err := tree.Read(t.Context(), f, "", 100)
	if err != nil || string(text) != "FROM b" {
		t.Fatalf("the recipe is %q, %v", text, err)
	}
	defer got.Close()
	if list(t, got) != list(t, made) {
		t.Errorf("got %s\nwant %s", list(t, got), list(t, made))
	}
}

// list returns the paths of a tree and its digest.
func list(t *testing.T, of *tree.Tree) string {
	t.Helper()
	root, err := of.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	err = of.Walk(root, func(f *tree.File) error {
		paths = append(paths, f.Path)
		return nil
	})
	sum, digestErr := of.Digest(t.Context(), root)
	if err != nil || digestErr != nil {
		t.Fatal(err, digestErr)
	}
	return strings.Join(paths, " ") + " " + sum
}

func TestHostile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		header tar.Header
		want   fault.Kind
	}{
		"out of the tree":    {tar.Header{Name: "../../etc/passwd", Typeflag: tar.TypeReg}, fault.Internal},
		"a link to nothing":  {tar.Header{Name: "a", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}, fault.InvalidArgument},
		"a sparse file":      {tar.Header{Name: "a", Typeflag: tar.TypeReg, PAXRecords: map[string]string{"SANDBOX.none": "1"}}, fault.Internal},
		"a path too long":    {tar.Header{Name: strings.Repeat("a/", 3000) + "b", Typeflag: tar.TypeReg}, fault.InvalidArgument},
		"a device":           {tar.Header{Name: "dev", Typeflag: tar.TypeChar}, fault.Internal},
		"the tree as a file": {tar.Header{Name: "/", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, fault.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, err := readTar(t, func(tw *tar.Writer) error {
				return errors.Join(tw.WriteHeader(&tar.Header{Name: "recipe", Typeflag: tar.TypeReg}), tw.WriteHeader(&tt.header))
			})
			if err == nil {
				_ = made.Close()
			}
			if (err == nil) != (tt.want == fault.Internal) || err != nil && !fault.Is(err, tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	for name, ignored := range map[string]string{
		"too many": strings.Repeat("a\n", 1001), "too long": strings.Repeat("*", 1001), "too large": strings.Repeat("\n", 300_000), "no pattern": "[",
	} {
		for way, open := range both {
			if _, err := open(t, map[string]string{".dockerignore": ignored, "recipe": ""}); !fault.Is(err, fault.InvalidArgument) && !fault.Is(err, fault.TooLarge) {
				t.Errorf("%s, %s: %v", name, way, err)
			}
		}
	}
}

// FuzzIgnore wants each .dockerignore to be read or refused, in a bounded time.
func FuzzIgnore(f *testing.F) {
	for _, text := range []string{files[".dockerignore"], "**/**/a\n!**", "\\", "[a-", "a?b*[^c]", "/../x\n!/", strings.Repeat("**/", 300) + "a"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, open := range both {
			made, err := open(t, map[string]string{".dockerignore": string(text), "recipe": "", "a/b/c": "1", "a/d": "2", "e": "-> a"})
			if err != nil {
				if !fault.Is(err, fault.InvalidArgument) && !fault.Is(err, fault.TooLarge) {
					t.Errorf("%q: %v", text, err)
				}
				return
			}
			_ = made.Close()
		}
	})
}

// FuzzArchive wants each context to be read or refused.
func FuzzArchive(f *testing.F) {
	var sent bytes.Buffer
	made, err := both["directory"](f, files)
	if err == nil {
		err = errors.Join(made.Pack(context.Background(), []byte("FROM b"), &sent), made.Close())
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sent.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		name := filepath.Join(t.TempDir(), "tar")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		made, _, err := tree.Read(t.Context(), file, "", 100)
		if err != nil {
			if !slices.Contains([]fault.Kind{fault.InvalidArgument, fault.FileNotFound, fault.TooLarge}, fault.Of(err).Kind) {
				t.Errorf("%v", err)
			}
			return
		}
		list(t, made)
	})
}
