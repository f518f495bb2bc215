package hostcopy

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandbox/core/fault"
)

// entries makes a tar: "name" a file with its name as content, "name/" a
// directory, "name -> to" a symbolic link, "name = to" a hard link, "name !" a FIFO.
func entries(t *testing.T, lines ...string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, line := range lines {
		h, content := &tar.Header{Name: line, Typeflag: tar.TypeReg, Mode: 0o4751}, line
		if name, to, ok := strings.Cut(line, " -> "); ok {
			h.Name, h.Linkname, h.Typeflag = name, to, tar.TypeSymlink
		} else if name, to, ok := strings.Cut(line, " = "); ok {
			h.Name, h.Linkname, h.Typeflag = name, to, tar.TypeLink
		} else if name, ok := strings.CutSuffix(line, " !"); ok {
			h.Name, h.Typeflag = name, tar.TypeFifo
		} else if strings.HasSuffix(line, "/") {
			h.Typeflag = tar.TypeDir
		}
		if h.Typeflag != tar.TypeReg {
			content = ""
		}
		h.Size = int64(len(content))
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// listing returns what is in a directory, one entry a line.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, name)
		if err != nil || rel == "." {
			return err
		}
		st, err := d.Info()
		b.WriteString(rel + " " + st.Mode().String() + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := entries(t, "d/", "d/f", "d/sub/", "d/sub/f", "d/link -> /etc/passwd", "d/hard = d/f", "d/fifo !")
	made, err := unpack(in, filepath.Join(dir, "new"))
	if err != nil || made != filepath.Join(dir, "new") {
		t.Fatal(made, err)
	}
	want := "new drwxr-x--x\nnew/f -rwxr-x--x\nnew/hard -rwxr-x--x\nnew/link Lrwxrwxrwx\nnew/sub drwxr-x--x\nnew/sub/f -rwxr-x--x\n"
	if got := listing(t, dir); got != want {
		t.Errorf("made %s\nwant %s", got, want)
	}
	if made, err = unpack(entries(t, "f"), dir); err != nil || made != filepath.Join(dir, "f") {
		t.Error("into a directory: ", made, err)
	}
	if made, err = unpack(entries(t, "f"), filepath.Join(dir, "g")); err != nil || made != filepath.Join(dir, "g") {
		t.Error("as a file: ", made, err)
	}
	if _, err = unpack(entries(t, "d/", "d/f", "d/link -> x"), filepath.Join(dir, "new", "..", "new", "..")); err != nil {
		t.Error("a second time, over what is there: ", err)
	}
}

// TestUnpackedModes: what is for everybody in the box is here for whom the umask
// lets, and nobody removes others' files from a copy of /tmp.
func TestUnpackedModes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "open"), 0o777); err != nil {
		t.Fatal(err)
	}
	open, err := os.Stat(filepath.Join(dir, "open"))
	if err != nil || open.Mode().Perm() == 0o777 {
		t.Fatalf("the test needs an umask: %v, %v", open, err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{
		{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777},
		{Name: "tmp/dir/", Typeflag: tar.TypeDir, Mode: 0o7777},
		{Name: "tmp/file", Typeflag: tar.TypeReg, Mode: 0o7777},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(&b, dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{
		"tmp": open.Mode() | fs.ModeSticky, "tmp/dir": open.Mode() | fs.ModeSticky, "tmp/file": open.Mode().Perm(),
	} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, st.Mode(), err, want)
		}
	}
}

// TestUnpackOfAHostileBox: nothing changes outside of what the copy is to be.
func TestUnpackOfAHostileBox(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"up":                      {"../evil"},
		"absolute":                {"/evil"},
		"nothing":                 {"."},
		"empty":                   {},
		"up inside":               {"d/", "d/../evil"},
		"beside":                  {"d/", "e"},
		"two files":               {"f", "e"},
		"through a link":          {"d/", "d/x -> ../other", "d/x/evil"},
		"through an absolute":     {"d/", "d/x -> /tmp", "d/x/evil"},
		"through two":             {"d/", "d/x -> .", "d/y -> x/../../other", "d/y/evil"},
		"hard link out":           {"d/", "d/x = ../other/kept"},
		"hard link up":            {"d/", "d/x = d/../../other/kept"},
		"hard link to a link":     {"d/", "d/x -> ../other/kept", "d/y = d/x", "d/y"},
		"over a link":             {"d/", "d/x -> ../other/kept", "d/x"},
		"mode through a link":     {"d/", "d/x/", "d/x -> ../other"},
		"a directory over a link": {"d/", "d/x -> ../other", "d/x/"},
		"top as a link":           {"d -> other", "d/evil"},
		"hard link at top":        {"d = other/kept"},
		"deep":                    {"d/", "d/" + strings.Repeat("a/", 2000)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "parent", "other"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "parent", "other", "kept"), []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := unpack(entries(t, lines...), filepath.Join(dir, "parent", "dest"))
			if err != nil && fault.Of(err).Kind == fault.Internal && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("a failure without a useful message: %v", err)
			}
			if err := os.RemoveAll(filepath.Join(dir, "parent", "dest")); err != nil {
				t.Fatal(err)
			}
			kept, _ := os.ReadFile(filepath.Join(dir, "parent", "other", "kept"))
			st, _ := os.Stat(filepath.Join(dir, "parent", "other", "kept"))
			if got := listing(t, dir); got != "parent drwx------\nparent/other drwx------\nparent/other/kept -rw-------\n" || string(kept) != "mine" || st.Mode() != 0o600 {
				t.Errorf("%v\n%s%q", err, got, kept)
			}
		})
	}
}

func FuzzUnpack(f *testing.F) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	_ = w.WriteHeader(&tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755})
	_ = w.WriteHeader(&tar.Header{Name: "d/x", Linkname: "../other", Typeflag: tar.TypeSymlink})
	_ = w.Close()
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, p []byte) {
		dir := t.TempDir()
		_, _ = unpack(bytes.NewReader(p), filepath.Join(dir, "dest"))
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 1 || len(left) == 1 && left[0].Name() != "dest" {
			t.Errorf("%v, %v", left, err)
		}
	})
}

func TestPack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "src", "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "src", "run"), []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("run", filepath.Join(dir, "src", "link")); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := pack(&b, filepath.Join(dir, "src")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if err != nil {
			break
		}
		got = append(got, h.Name+" "+h.FileInfo().Mode().String()+" "+h.Linkname)
	}
	if want := "empty/ drwxr-xr-x |link Lrwxrwxrwx run|run -rwxr-xr-x "; strings.Join(got, "|") != want {
		t.Errorf("%q, want %q", got, want)
	}
}
