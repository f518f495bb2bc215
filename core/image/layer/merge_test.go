package layer

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// overlaid mounts layers, lowest first, with upper on top, which may be "".
func overlaid(t *testing.T, layers []string, upper string) string {
	t.Helper()
	lower := slices.Clone(layers)
	slices.Reverse(lower)
	place, options := t.TempDir(), "userxattr,lowerdir="+strings.Join(lower, ":")
	if upper != "" {
		options += ",upperdir=" + upper + ",workdir=" + t.TempDir()
	}
	if err := unix.Mount("overlay", place, "overlay", 0, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(place, unix.MNT_DETACH) })
	return place
}

// merged merges layers, lowest first, but for so many of the lowest.
func merged(t *testing.T, layers []string, lowest int) string {
	t.Helper()
	var opened []*os.File
	for _, dir := range slices.Backward(layers) {
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		opened = append(opened, f)
	}
	to := t.TempDir()
	f, err := os.Open(to)
	if err == nil {
		defer f.Close()
		err = mergeTrees(opened[:len(layers)-lowest], opened[len(layers)-lowest:], int(f.Fd()))
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// tells describes all files of a tree.
func tells(t *testing.T, root string) (lines []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		content := ""
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = fmt.Sprintf("%t %.20q", st.Blocks < 100, data)
		case unix.S_IFLNK:
			content, _ = os.Readlink(path)
		case unix.S_IFDIR:
			st.Size = 0
		}
		value := make([]byte, 100)
		n, _ := unix.Lgetxattr(path, "user.mine", value)
		lines = append(lines, fmt.Sprintf("%s %o %d:%d %d %d.%d %s %q", strings.TrimPrefix(path, root), st.Mode, st.Uid, st.Gid, st.Size, st.Mtim.Sec, st.Mtim.Nsec, content, value[:max(n, 0)]))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// A merged layer shows, on what lies below, what the layers do that were merged into it:
// whatever was made, changed, moved and removed in them.
func TestMerge(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			var layers []string
			for n := range 7 {
				dir := t.TempDir()
				if err := os.Chown(dir, 9*IDsPerBox, 9*IDsPerBox); err != nil {
					t.Fatal(err)
				}
				at := dir
				if n > 0 {
					at = overlaid(t, layers, dir)
				}
				for range 60 {
					disturb(r, at)
				}
				if n > 0 {
					_ = unix.Unmount(at, 0)
				}
				layers = append(layers, dir)
			}
			want := tells(t, overlaid(t, layers, t.TempDir()))
			got := tells(t, overlaid(t, []string{layers[0], merged(t, layers, 1)}, t.TempDir()))
			want, got = want[1:], got[1:] // the root is that of the new upper directory
			for i := range max(len(want), len(got)) {
				if i >= len(want) || i >= len(got) || want[i] != got[i] {
					t.Fatalf("at %d:\n%s\nwant\n%s", i, strings.Join(got[min(i, len(got)):min(i+3, len(got))], "\n"), strings.Join(want[min(i, len(want)):min(i+3, len(want))], "\n"))
				}
			}
		})
	}
}

// disturb does something to a tree. What can't be done is left undone.
func disturb(r *rand.Rand, root string) {
	name := func() string {
		path := root
		for range 1 + r.IntN(3) {
			path = filepath.Join(path, string(rune('a'+r.IntN(4))))
		}
		return path
	}
	path, id := name(), 9*IDsPerBox+r.IntN(1000)
	switch r.IntN(12) {
	case 0, 1, 2:
		_ = os.Mkdir(path, 0o755)
	case 3, 4:
		_ = os.WriteFile(path, []byte(fmt.Sprint(r.Int())), 0o600)
	case 5:
		_ = os.RemoveAll(path)
	case 6:
		_ = os.Rename(path, name())
	case 7:
		_ = os.Symlink(fmt.Sprint(r.Int()), path)
	case 8:
		_ = os.Link(path, name())
	case 9:
		_ = unix.Mkfifo(path+"p", 0o640) // nobody opens it, who would have to wait
	case 10:
		_ = os.Truncate(path, 1<<20)
	case 11:
		_ = unix.Lsetxattr(path, "user.mine", []byte(fmt.Sprint(r.Int())), 0)
	}
	_ = os.Lchown(path, id, id+1)
	if r.IntN(3) == 0 {
		_ = syscall.Chmod(path, uint32(r.IntN(0o10000)))
	}
}

// Layers of several boxes have their owners in the ids of the topmost one; hard links stay,
// and what overlayfs notes of one layer does not.
func TestMergeOwners(t *testing.T) {
	t.Parallel()
	acl := func(id int) []byte {
		value := binary.LittleEndian.AppendUint32(nil, 2)
		for _, e := range [][3]int{{1, 7, -1}, {2, 5, id}, {4, 5, -1}, {0x10, 7, -1}, {0x20, 5, -1}} {
			value = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(value, uint16(e[0])), uint16(e[1]))
			value = binary.LittleEndian.AppendUint32(value, uint32(e[2]))
		}
		return value
	}
	capability := func(root int) []byte {
		value := make([]byte, 24)
		binary.LittleEndian.PutUint32(value, 3<<24|1)
		value[5] = 4 // CAP_NET_BIND_SERVICE
		binary.LittleEndian.PutUint32(value[20:], uint32(root))
		return value
	}
	below, above := t.TempDir(), t.TempDir()
	for dir, box := range map[string]int{below: 3, above: 5} {
		file := filepath.Join(dir, fmt.Sprint(box))
		err := os.WriteFile(file, []byte("x"), 0o755)
		for _, path := range []string{file, dir} {
			if err == nil {
				err = os.Chown(path, box*IDsPerBox+7, box*IDsPerBox+8)
			}
		}
		for name, value := range map[string][]byte{"system.posix_acl_access": acl(box*IDsPerBox + 9), "security.capability": capability(box * IDsPerBox), overlayAttributes + "origin": []byte("x"), "user.own": []byte("y")} {
			if err == nil {
				err = unix.Setxattr(file, name, value, 0)
			}
		}
		if err == nil {
			err = os.Link(file, file+"again")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	root := merged(t, []string{below, above}, 0)
	for _, name := range []string{"3", "5", "3again", "5again"} {
		path := filepath.Join(root, name)
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil || st.Uid != 5*IDsPerBox+7 || st.Gid != 5*IDsPerBox+8 || st.Nlink != 2 {
			t.Errorf("%s: %+v, %v", name, st, err)
		}
		for attribute, want := range map[string][]byte{"system.posix_acl_access": acl(5*IDsPerBox + 9), "security.capability": capability(5 * IDsPerBox), overlayAttributes + "origin": nil, "user.own": []byte("y")} {
			value := make([]byte, 100)
			n, _ := unix.Getxattr(path, attribute, value)
			if got := value[:max(n, 0)]; string(got) != string(want) {
				t.Errorf("%s of %s is %x, want %x", attribute, name, got, want)
			}
		}
	}
}
