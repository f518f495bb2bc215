package layer_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/image/layer"
)

// packed returns the tar of the layer in dir, or fails the test.
func packed(t testing.TB, dir string) []byte {
	t.Helper()
	data, err := tryPack(t.Context(), t, dir, layer.DefaultLimits)
	if err != nil {
		t.Fatal("needs root: ", err)
	}
	return data
}

func tryPack(ctx context.Context, t testing.TB, dir string, lim layer.Limits) ([]byte, error) {
	t.Helper()
	root, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var b bytes.Buffer
	err = layer.Pack(ctx, root, &b, lim)
	return b.Bytes(), err
}

// entries describes all that a layer in dir has, as a box sees it whose ids begin
// at base: a line for each name.
func entries(t testing.TB, dir string, base uint32) map[string]string {
	t.Helper()
	all, first := map[string]string{}, map[uint64]string{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT == unix.S_IFSOCK {
			return nil // not packed
		}
		if st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0 {
			all[name] = "whiteout"
			return nil
		}
		line := fmt.Sprintf("%o %d:%d %d.%d", st.Mode, st.Uid-base, st.Gid-base, st.Mtim.Sec, st.Mtim.Nsec)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %d bytes %x%s", st.Size, sha256.Sum256(data), attributesOf(t, path))
		case unix.S_IFDIR:
			line += attributesOf(t, path)
		case unix.S_IFLNK:
			to, _ := os.Readlink(path)
			line += " -> " + to
		}
		if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			if _, ok := first[st.Ino]; !ok {
				first[st.Ino] = name
			}
			line += " like " + first[st.Ino]
		}
		all[name] = line
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// attributesOf returns the attributes that a layer keeps.
func attributesOf(t testing.TB, path string) (all string) {
	t.Helper()
	names, value := make([]byte, 64<<10), make([]byte, 64<<10)
	n, err := unix.Llistxattr(path, names)
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Split(strings.TrimSuffix(string(names[:n]), "\x00"), "\x00")
	slices.Sort(list)
	for _, name := range list {
		if !strings.HasPrefix(name, "user.") && name != "security.capability" || strings.HasPrefix(name, "user.overlay.") && name != "user.overlay.opaque" {
			continue
		}
		n, err := unix.Lgetxattr(path, name, value)
		if err != nil {
			t.Fatal(err)
		}
		all += fmt.Sprintf(" %s=%q", name, value[:n])
	}
	return all
}

// compare fails the test where two descriptions of layers differ.
func compare(t testing.TB, got, want map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("%q is %q, want %q", name, got[name], want[name])
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%q came in", name)
		}
	}
}

// again unpacks the tar of a layer, and compares the two layers and their tars.
func again(t testing.TB, dir string) {
	t.Helper()
	data := packed(t, dir)
	twin := t.TempDir()
	if err := extract(t, data, twin, layer.DefaultLimits); err != nil {
		t.Fatal(err)
	}
	compare(t, entries(t, twin, 0), entries(t, dir, 0))
	if !bytes.Equal(packed(t, twin), data) {
		t.Error("the tar of the unpacked layer is another one")
	}
}

// TestPackUnpacked packs layers that were unpacked from the tars of images.
func TestPackUnpacked(t *testing.T) {
	t.Parallel()
	owned := attr(attr(file("d/owned", "text"), "user.note", "yes\x00no"), "security.capability", capability2)
	owned.Uid, owned.Gid, owned.Mode = 65535, 1000, 0o6751
	root := dir("./")
	root.Mode, root.Uid = 0o711, 5
	sticky := attr(dir("d/sticky"), "user.a", "b")
	sticky.Mode = 0o3777
	for name, data := range map[string][]byte{
		"nothing": pack(t),
		"all": pack(t, root, dir("d"), owned, hardlink("d/again", "d/owned"), symlink("d/link", "../.."), hardlink("a", "d/link"), sticky,
			file("d/.wh.gone", ""), file("o/.wh..wh..opq", ""), file("o/new", "x"), file("o/\xff\xfe not UTF-8\n", "x"),
			file(strings.Repeat("d/", 900)+"deep", "x"), file("n"+strings.Repeat("n", 200), strings.Repeat("x", 300<<10))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			again(t, unpacked(t, data))
		})
	}
}

// Capabilities of a file, cap_net_bind_service+ep: one that counts everywhere,
// and one of a root that follows.
const (
	capability2 = "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	capability3 = "\x01\x00\x00\x03\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
)

// TestPackOfBox packs a layer that a box has made in its range of ids.
func TestPackOfBox(t *testing.T) {
	t.Parallel()
	const base = 7 << 16
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	set := func(name, attr, value string) {
		t.Helper()
		if err := unix.Setxattr(path(name), attr, []byte(value), 0); err != nil {
			t.Fatal("needs root: ", err)
		}
	}
	for _, name := range []string{"server", "nested", "foreign", "sparse"} {
		if err := os.WriteFile(path(name), []byte(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(os.Mkdir(path("opaque"), 0o750), os.Mkdir(path("merged"), 0o755), unix.Mknod(path("merged/gone"), unix.S_IFCHR, 0),
		unix.Mkfifo(path("fifo"), 0o640), os.Truncate(path("sparse"), 64<<20),
		unix.Mknod(path("socket"), unix.S_IFSOCK|0o600, 0), unix.Setxattr(path("merged"), "user.overlay.impure", []byte("y"), 0))
	for _, name := range []string{".", "server", "nested", "foreign", "sparse", "opaque", "merged", "fifo", "socket"} {
		err = errors.Join(err, os.Lchown(path(name), base, base+1000))
	}
	if err != nil {
		t.Fatal("needs root: ", err)
	}
	set("opaque", "user.overlay.opaque", "y")
	set("merged", "user.overlay.opaque", "x") // says that there are whiteouts, not that it is opaque
	set("server", "security.capability", capability3+"\x00\x00\x07\x00")
	set("nested", "security.capability", capability3+"\x09\x00\x07\x00")
	set("foreign", "security.capability", capability3+"\x00\x00\x06\x00")

	twin := filepath.Join(t.TempDir(), "twin")
	if err := unpack(t.Context(), packed(t, dir), twin); err != nil {
		t.Fatal(err)
	}
	want := entries(t, dir, base)
	for name, value := range map[string]string{"server": capability2, "nested": capability3 + "\x09\x00\x00\x00", "foreign": ""} {
		line, _, _ := strings.Cut(want[name], " security.capability=")
		if value != "" {
			line += fmt.Sprintf(" security.capability=%q", value)
		}
		want[name] = line
	}
	want["merged"] = strings.ReplaceAll(want["merged"], ` user.overlay.opaque="x"`, "")
	compare(t, entries(t, twin, 0), want)
	if st := stat(t, twin, "sparse"); st.Blocks*512 > 1<<20 {
		t.Errorf("%d bytes on disk of %d", st.Blocks*512, st.Size)
	}
}

// TestPackIsBounded packs layers that no image can have.
func TestPackIsBounded(t *testing.T) {
	t.Parallel()
	lim := layer.Limits{Entries: 10, Bytes: 100}
	for name, c := range map[string]struct {
		make func(dir string) error
		kind fault.Kind
		want string
	}{
		"a name of whiteouts":     {func(dir string) error { return os.WriteFile(dir+"/.wh.passwd", nil, 0o600) }, fault.Image, "files that were removed"},
		"a whiteout of one":       {func(dir string) error { return unix.Mknod(dir+"/.wh..opq", unix.S_IFCHR, 0) }, fault.Image, "files that were removed"},
		"a device":                {func(dir string) error { return unix.Mknod(dir+"/sda", unix.S_IFBLK, 8<<8) }, fault.Image, "a device"},
		"an owner above":          {func(dir string) error { return errors.Join(os.Mkdir(dir+"/d", 0o700), os.Chown(dir+"/d", 1<<16, 0)) }, fault.Image, "owner 65536:0"},
		"an owner below":          {func(dir string) error { return errors.Join(os.Mkdir(dir+"/d", 0o700), os.Chown(dir, 1<<16, 1<<16)) }, fault.Image, "owner 0:0"},
		"too many files":          {func(dir string) error { return many(dir, 11) }, fault.TooLarge, "more files"},
		"too many bytes":          {func(dir string) error { return os.WriteFile(dir+"/f", make([]byte, 101), 0o600) }, fault.TooLarge, `"f"`},
		"a hole that is too long": {func(dir string) error { return hollow(dir + "/f") }, fault.TooLarge, `"f"`},
		"an attribute with =": {func(dir string) error {
			return errors.Join(os.Mkdir(dir+"/d", 0o700), unix.Setxattr(dir+"/d", "user.a=b", []byte("x"), 0))
		}, fault.Image, "attribute"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := c.make(dir); err != nil {
				t.Fatal("needs root: ", err)
			}
			if _, err := tryPack(t.Context(), t, dir, lim); !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %v with %q", err, c.kind, c.want)
			}
		})
	}
	t.Run("as much as may be", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := errors.Join(many(dir, 9), os.WriteFile(dir+"/f", make([]byte, 100), 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := tryPack(t.Context(), t, dir, lim); err != nil {
			t.Error(err)
		}
	})
}

func many(dir string, n int) (err error) {
	for i := range n {
		err = errors.Join(err, os.Mkdir(fmt.Sprint(dir, "/d", i), 0o700))
	}
	return err
}

// hollow makes a file of one hole.
func hollow(path string) error {
	return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40))
}

// TestPackTooDeep packs a tree whose names are longer than a path may be.
func TestPackTooDeep(t *testing.T) {
	t.Parallel()
	top, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	name := top.Name()
	part := strings.Repeat("d", 200)
	for range 25 { // relative to the one above, as a box can make it
		if err := top.Mkdir(part, 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := top.OpenRoot(part)
		if err != nil {
			t.Fatal(err)
		}
		_ = top.Close()
		top = next
	}
	_ = top.Close()
	if _, err := tryPack(t.Context(), t, name, layer.DefaultLimits); !fault.Is(err, fault.Image) || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("%v, want image_error", err)
	}
}

// TestPackEnds ends the context of a pack, and has its writer fail.
func TestPackEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := hollow(dir + "/f"); err != nil {
		t.Fatal(err)
	}
	lim := layer.Limits{Entries: 1, Bytes: 1 << 40}
	root, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ctx, cancel := context.WithCancel(t.Context())
	if err := layer.Pack(ctx, root, writer(func() error { cancel(); return nil }), lim); !fault.Is(err, fault.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
	broken := fault.New(fault.Upstream, "broken")
	if err := layer.Pack(t.Context(), root, writer(func() error { return broken }), lim); !fault.Is(err, fault.Upstream) {
		t.Errorf("%v, want that of the writer", err)
	}
}

// writer is called with each write.
type writer func() error

func (w writer) Write(p []byte) (int, error) { return len(p), w() }

// TestPackRandom packs and unpacks random layers.
func TestPackRandom(t *testing.T) {
	t.Parallel()
	for seed := range int64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			again(t, grow(t, rand.New(rand.NewSource(seed)), 200))
		})
	}
}

// FuzzPack packs and unpacks layers that follow from arbitrary bytes.
func FuzzPack(f *testing.F) {
	f.Add([]byte("seed"))
	f.Add(bytes.Repeat([]byte{7, 1, 200}, 50))
	f.Fuzz(func(t *testing.T, data []byte) {
		again(t, grow(t, bytewise{bytes.NewReader(data)}, min(len(data), 50)))
	})
}

// chooser makes the choices of which a tree is made.
type chooser interface{ Intn(n int) int }

// bytewise takes choices from bytes, and 0 after their end.
type bytewise struct{ r io.ByteReader }

func (b bytewise) Intn(n int) int {
	c, _ := b.r.ReadByte()
	return int(c) % n
}

// grow makes a layer of n entries as c chooses them.
func grow(t testing.TB, c chooser, n int) string {
	t.Helper()
	top := t.TempDir()
	dirs, files := []string{top}, []string{}
	for i := range n {
		name := filepath.Join(dirs[c.Intn(len(dirs))], fmt.Sprintf("%c%d%s", 'a'+rune(c.Intn(26)), i, strings.Repeat("\xffé ", c.Intn(40))))
		kind := c.Intn(7)
		if err := plant(c, kind, name, files); err != nil {
			t.Fatal("needs root: ", err)
		}
		switch kind {
		case 0:
			dirs = append(dirs, name)
		case 1, 2, 3:
			files = append(files, name)
		}
	}
	for _, name := range append(files, dirs...) {
		if err := dressUp(c, name); err != nil {
			t.Fatal("needs root: ", err)
		}
	}
	return top
}

// plant makes one entry.
func plant(c chooser, kind int, name string, files []string) error {
	switch kind {
	case 0:
		return os.Mkdir(name, 0o700)
	case 1:
		return os.WriteFile(name, bytes.Repeat([]byte{byte(c.Intn(3))}, c.Intn(200<<10)), 0o600)
	case 2:
		err := os.WriteFile(name, []byte("begin"), 0o600)
		return errors.Join(err, os.Truncate(name, int64(c.Intn(1<<20))))
	case 3:
		return unix.Mkfifo(name, 0o600)
	case 4:
		return unix.Mknod(name, unix.S_IFCHR, 0)
	case 5:
		if len(files) > 0 {
			return os.Link(files[c.Intn(len(files))], name)
		}
	}
	return os.Symlink(strings.Repeat("../to", 1+c.Intn(100)), name)
}

// dressUp gives a file or directory an owner, a mode, attributes and a time.
func dressUp(c chooser, name string) error {
	err := os.Chown(name, c.Intn(1<<16), c.Intn(1<<16))
	err = errors.Join(err, unix.Chmod(name, uint32(c.Intn(1<<12))))
	st, statErr := os.Lstat(name)
	if statErr == nil && !st.Mode().IsRegular() && !st.IsDir() {
		c = bytewise{bytes.NewReader(nil)} // a FIFO can have no attributes
	}
	for range c.Intn(3) {
		err = errors.Join(err, unix.Setxattr(name, fmt.Sprint("user.", c.Intn(1000)), bytes.Repeat([]byte{byte(c.Intn(256))}, c.Intn(500)), 0))
	}
	if statErr == nil && st.IsDir() && c.Intn(4) == 3 {
		err = errors.Join(err, unix.Setxattr(name, "user.overlay.opaque", []byte("y"), 0))
	}
	at := unix.Timespec{Sec: int64(c.Intn(1<<31-1)) - 1<<29, Nsec: int64(c.Intn(1e9))}
	return errors.Join(err, statErr, unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{at, at}, 0))
}
