package delta

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// make makes the files of an image.
const makeImage = `
mkdir -p etc empty bin data/deep tmp kept
echo image > etc/passwd; echo old > etc/old; echo same > etc/same; echo mode > etc/mode
echo one > data/deep/one; ln data/deep/one data/deep/two; ln -s etc/passwd link; echo f > file; mkdir dir; echo x > dir/x
echo touched > etc/touched; chmod 1777 tmp; echo a > kept/a
find . -exec touch -h -d '2001-01-01 00:00:00' {} +
`

// change changes them as a box does.
const change = `
echo changed > etc/passwd; rm etc/old; chmod 4751 etc/mode; chown 12:34 etc/mode
echo more >> data/deep/one
rm -r dir; echo 'a file' > dir; rm file; mkdir -p file/now; echo d > file/now/d
rm link; ln -s /nowhere link; mkfifo -m 640 pipe; mkdir -m 750 new; chown 7:8 new
echo h > new/h1; ln new/h1 new/h2; ln new/h1 new/h3
truncate -s 64M sparse; printf end | dd of=sparse bs=1 seek=32M conv=notrunc status=none
cp -p etc/touched t; echo TOUCHED > etc/touched; touch -r t etc/touched; rm t
touch -d '1910-01-02 03:04:05.678' 'new/old name'; printf '\xff\n' > "$(printf 'new/\xff\nname')"
touch -d '2030-01-02 03:04:05.678' etc
`

// tree makes an image and a root that is equal to it.
func tree(t *testing.T) (image, root string) {
	t.Helper()
	image, root = t.TempDir(), t.TempDir()
	sh(t, image, makeImage)
	attribute(t, filepath.Join(image, "empty"), "user.of.image", "1")
	sh(t, image, "cp -a . "+root)
	return image, root
}

// attribute sets an extended attribute, or removes one.
func attribute(t *testing.T, path, name, value string) {
	t.Helper()
	err := unix.Setxattr(path, name, []byte(value), 0)
	if value == "" {
		err = unix.Removexattr(path, name)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func sh(t *testing.T, dir, script string) {
	t.Helper()
	c := osexec.Command("sh", "-ec", script)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}

// state returns all that there is to know of the files in a directory.
func state(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	first := map[uint64]string{}
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if first[st.Ino] == "" {
			first[st.Ino] = name
		}
		content := ""
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = fmt.Sprintf("%d bytes, in few blocks: %v, ends with %q", len(raw), st.Blocks < 1000, raw[max(0, len(raw)-20):])
			content += fmt.Sprint(bytes.LastIndexByte(raw, 'd'))
		case unix.S_IFLNK:
			content, _ = os.Readlink(path)
		}
		attributes := ""
		names := make([]byte, 1024)
		if n, err := unix.Llistxattr(path, names); err == nil {
			for _, name := range slices.Sorted(strings.SplitSeq(strings.TrimSuffix(string(names[:n]), "\x00"), "\x00")) {
				value := make([]byte, 1024)
				n, _ := unix.Lgetxattr(path, name, value)
				attributes += fmt.Sprintf(" %s=%q", name, value[:max(n, 0)])
			}
		}
		all[name] = fmt.Sprintf("%o %d:%d %v, %s, as %s%s", st.Mode, st.Uid, st.Gid, st.Mtim, content, first[st.Ino], attributes)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func open(t *testing.T, dir string) *os.File {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// save returns the delta of a tree, and from when on its files count as changed.
func save(t *testing.T, image, root string, since time.Time) []byte {
	t.Helper()
	var w bytes.Buffer
	if err := Save(&w, open(t, root), open(t, image), since); err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

// born returns the time of the file system, which is behind the clock's.
func born(t *testing.T, dir string) time.Time {
	t.Helper()
	time.Sleep(20 * time.Millisecond) // behind the time of what is there
	name := filepath.Join(dir, "born")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := look(unix.AT_FDCWD, name)
	if err == nil {
		err = os.Remove(name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return timeOf(st.Ctime)
}

func equal(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("%q:\n got %s\nwant %s", name, got[name], want[name])
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("what should not be there: %q", got)
	}
}

func TestDelta(t *testing.T) {
	t.Parallel()
	image, root := tree(t)
	since := born(t, root)
	sh(t, root, change)
	attribute(t, filepath.Join(root, "etc/passwd"), "user.of.box", "yes")
	attribute(t, filepath.Join(root, "new"), "user.dir", "yes")
	attribute(t, filepath.Join(root, "empty"), "user.of.image", "")
	// cap_net_raw, as a program has that may ping.
	attribute(t, filepath.Join(root, "new/h1"), "security.capability", "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	want := state(t, root)
	raw := save(t, image, root, since)
	if len(raw) > 20<<10 {
		t.Errorf("%d bytes for a few small files and a hole", len(raw))
	}
	next := t.TempDir()
	sh(t, image, "cp -a . "+next)
	if err := Restore(bytes.NewReader(raw), openRoot(t, next)); err != nil {
		t.Fatal(err)
	}
	equal(t, state(t, next), want)

	// A box that has a disk which was put back is saved whole again.
	again := save(t, image, next, since)
	third := t.TempDir()
	sh(t, image, "cp -a . "+third)
	if err := Restore(bytes.NewReader(again), openRoot(t, third)); err != nil {
		t.Fatal(err)
	}
	equal(t, state(t, third), want)
}

// TestClock has a clock that was set back: no file has changed since the box began.
func TestClock(t *testing.T) {
	t.Parallel()
	image, root := tree(t)
	sh(t, root, "echo longer than before > etc/passwd; rm etc/old; mkdir new; chmod 700 kept; touch etc/same")
	want := state(t, root)
	raw := save(t, image, root, time.Now().Add(time.Hour))
	next := t.TempDir()
	sh(t, image, "cp -a . "+next)
	if err := Restore(bytes.NewReader(raw), openRoot(t, next)); err != nil {
		t.Fatal(err)
	}
	equal(t, state(t, next), want)
}

// TestUnchanged saves a box that has changed nothing: the delta has the root alone.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	image, root := tree(t)
	if raw := save(t, image, root, born(t, root)); len(raw) > 400 {
		t.Errorf("%d bytes", len(raw))
	}
}

// TestMounts leaves out what is mounted in a box.
func TestMounts(t *testing.T) {
	t.Parallel()
	image, root := tree(t)
	since := born(t, root)
	sh(t, root, "mkdir mnt; echo x > hosts")
	for name, from := range map[string]string{"mnt": image, "hosts": filepath.Join(image, "etc/same")} {
		at := filepath.Join(root, name)
		if err := unix.Mount(from, at, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	}
	raw := save(t, image, root, since)
	next := t.TempDir()
	if err := Restore(bytes.NewReader(raw), openRoot(t, next)); err != nil {
		t.Fatal(err)
	}
	if got := state(t, next); len(got) != 1 {
		t.Errorf("it has %q", got)
	}
}

// TestDamaged restores deltas that have lost their ends or a bit.
func TestDamaged(t *testing.T) {
	t.Parallel()
	image, root := tree(t)
	since := born(t, root)
	sh(t, root, "head -c 1000000 /dev/urandom > etc/random; head -c 1000000 /dev/zero > etc/zero")
	raw := save(t, image, root, since)
	for name, damaged := range map[string][]byte{
		"empty": {}, "half": raw[:len(raw)/2], "no end": raw[:len(raw)-1], "no checksum": raw[:len(raw)-4],
		"a bit": slices.Concat(raw[:len(raw)/2], []byte{raw[len(raw)/2] ^ 1}, raw[len(raw)/2+1:]),
	} {
		if err := Restore(bytes.NewReader(damaged), openRoot(t, t.TempDir())); !fault.Is(err, fault.Storage) {
			t.Errorf("%s: %v, want a failure of the storage", name, err)
		}
	}
}

// TestHostile restores what only a box could have written, which must not lead out of it.
func TestHostile(t *testing.T) {
	t.Parallel()
	image, root := tree(t)
	since := born(t, root)
	outside := t.TempDir()
	sh(t, root, "mkdir way; echo x > way/in")
	raw := save(t, image, root, since)
	next := t.TempDir()
	sh(t, next, "ln -s "+outside+" way")
	// The delta makes the directory in the link's place, and so nothing beyond it.
	if err := Restore(bytes.NewReader(raw), openRoot(t, next)); err != nil {
		t.Fatal(err)
	}
	if got := state(t, outside); len(got) != 1 {
		t.Errorf("outside there is %q", got)
	}
	x := restorer{root: open(t, next)}
	sh(t, next, "rm -r way; ln -s "+outside+" way")
	for _, name := range []string{"..", "../x", "/etc/x", "a/../../x", "", ".", "a//b", "way/x"} {
		if dir, _, err := x.parent(name); err == nil {
			_ = dir.Close()
			t.Errorf("%q leads to %s", name, dir.Name())
		}
	}
}

// volumes returns what opens a directory for a life.
func volumes(t *testing.T, dir string) func(life int) *Volume {
	return func(life int) *Volume {
		t.Helper()
		v, err := OpenVolume(dir, life)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestVolume(t *testing.T) {
	t.Parallel()
	image, root := tree(t)
	dir := t.TempDir()
	since := born(t, root)
	volume := volumes(t, dir)
	saved := func(life int, script string) {
		t.Helper()
		sh(t, root, script)
		if err := volume(life).Save(open(t, root), open(t, image), since); err != nil {
			t.Fatal(err)
		}
	}
	restored := func(life int) string {
		t.Helper()
		next := t.TempDir()
		if err := volume(life).Restore(openRoot(t, next)); err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(filepath.Join(next, "of"))
		return string(text)
	}
	if got := restored(1); got != "" {
		t.Errorf("of a new volume: %q", got)
	}
	saved(1, "printf 1 > of")
	saved(2, "printf 2 > of")
	if got := restored(3); got != "2" {
		t.Errorf("after two lives: %q", got)
	}
	saved(4, "printf 4 > of")
	saved(3, "printf 3 > of") // a node that was taken for lost
	if got := restored(5); got != "4" {
		t.Errorf("after a life that ended late: %q", got)
	}
	if names, _ := filepath.Glob(dir + "/*"); len(names) != 2 {
		t.Errorf("the volume has %q", names)
	}
}

// TestLivesAtOnce has a life that ends late save while the next one does: neither touches
// what the other one writes, and what is half written is not restored.
func TestLivesAtOnce(t *testing.T) {
	t.Parallel()
	image, root := tree(t)
	dir := t.TempDir()
	since := born(t, root)
	volume := volumes(t, dir)
	create := func(v *Volume) *os.File {
		f, err := v.create()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	restored := func(life int) string {
		t.Helper()
		next := t.TempDir()
		if err := volume(life).Restore(openRoot(t, next)); err != nil {
			t.Error(err)
		}
		text, _ := os.ReadFile(filepath.Join(next, "of"))
		return string(text)
	}
	sh(t, root, "printf 1 > of")
	if err := volume(1).Save(open(t, root), open(t, image), since); err != nil {
		t.Fatal(err)
	}
	late, next := volume(2), volume(3)
	of2, of3 := create(late), create(next)
	sh(t, root, "printf 2 > of")
	if err := Save(of2, open(t, root), open(t, image), since); err != nil {
		t.Fatal(err)
	}
	_ = late.publish() // it may have been removed, as older than the next
	if got := restored(4); got != "1" && got != "2" {
		t.Errorf("while the next life saves: %q", got)
	}
	sh(t, root, "printf 3 > of")
	err := Save(of3, open(t, root), open(t, image), since)
	if err == nil {
		err = next.publish()
	}
	if err != nil {
		t.Errorf("the next life: %v", err)
	}
	if got := restored(4); got != "3" {
		t.Errorf("after the next life: %q", got)
	}
}

// TestReplaced restores what a life that ended late has put in the place of what there was
// when the lives were listed.
func TestReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v, err := OpenVolume(dir, 3)
	if err != nil {
		t.Fatal(err)
	}
	sh(t, dir, "printf late > 2.delta; printf other > 4.delta")
	f, err := v.latest([]int{1})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); string(got) != "late" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	sh(t, dir, "ln -s nowhere 3.delta") // which a box can make
	if err := v.Restore(openRoot(t, t.TempDir())); !fault.Is(err, fault.Storage) {
		t.Errorf("a name that leads nowhere: %v", err)
	}
	sh(t, dir, "rm 2.delta 3.delta")
	if _, err := v.latest([]int{2}); !fault.Is(err, fault.Storage) {
		t.Errorf("what was saved is gone: %v", err)
	}
}

// TestFull saves more than the volume holds: what was saved before is there then.
func TestFull(t *testing.T) {
	t.Parallel()
	image, root := tree(t)
	since := born(t, root)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	v, err := OpenVolume(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	sh(t, root, "echo small > etc/small")
	if err := v.Save(open(t, root), open(t, image), since); err != nil {
		t.Fatal(err)
	}
	sh(t, root, "head -c 2000000 /dev/urandom > etc/large")
	if err := v.Save(open(t, root), open(t, image), since); !fault.Is(err, fault.Storage) || !strings.Contains(err.Error(), "no room") {
		t.Errorf("more than there is room for: %v", err)
	}
	next := t.TempDir()
	sh(t, image, "cp -a . "+next)
	if err := v.Restore(openRoot(t, next)); err != nil {
		t.Fatal(err)
	}
	got := state(t, next)
	if got["etc/small"] == "" || got["etc/large"] != "" {
		t.Errorf("it has %q", slices.Collect(maps.Keys(got)))
	}
	if names, _ := filepath.Glob(dir + "/*"); len(names) != 1 {
		t.Errorf("the volume has %q", names)
	}
}

// BenchmarkSave saves 100 MB that can't be compressed.
func BenchmarkSave(b *testing.B) {
	image, root := b.TempDir(), b.TempDir()
	c := osexec.Command("sh", "-ec", "head -c 100000000 /dev/urandom > "+root+"/f")
	if err := c.Run(); err != nil {
		b.Fatal(err)
	}
	r, err := os.Open(root)
	if err != nil {
		b.Fatal(err)
	}
	i, err := os.Open(image)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(100000000)
	for b.Loop() {
		if err := Save(io.Discard, r, i, time.Time{}); err != nil {
			b.Fatal(err)
		}
	}
}
