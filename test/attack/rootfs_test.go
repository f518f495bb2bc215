package attack_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/rootfs"
)

// tree hashes all of a directory: names, kinds, modes, owners, times, contents.
func tree(t *testing.T, root string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		fmt.Fprintln(h, path, st.Mode, st.Uid, st.Gid, st.Rdev, st.Nlink, st.Size, st.Mtim, st.Ctim)
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			_, _ = h.Write(data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// A box that writes, deletes and gives away all it can changes nothing of the
// directory that it stands on.
func TestRootfsStaysAsItIs(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	before := tree(t, b.Root)
	b.Sh(t, `for f in /etc/* /bin/* /home/* /root /tmp; do chown 1000:1000 $f; chmod 777 $f; touch $f; done
		echo more >>/etc/passwd; ln /etc/group /etc/again; mv /etc/hosts /etc/moved; mkdir /new; rm -rf /home /var /usr; rm /bin/vi`)
	if out := b.Sh(t, "ls -d /new /home /etc/moved 2>/dev/null"); out != "/etc/moved\n/new\n" {
		t.Errorf("the box did not change its own: %q", out)
	}
	if after := tree(t, b.Root); after != before {
		t.Error("the directory has changed")
	}
}

// Names that lead to the host's files, in the tree of a box, are refused or
// mean the box's own files.
func TestRootfsLinksOut(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"dev", "proc", "sys", "etc", "sbin", "tmp", "root", "run"} {
		for _, relative := range []bool{false, true} {
			t.Run(fmt.Sprint(name, relative), func(t *testing.T) {
				t.Parallel()
				outside, root := t.TempDir(), rootfs.Busybox(t)
				if err := os.WriteFile(filepath.Join(outside, "passwd"), []byte("root:x:0:0::/:\noutside:x:7:7::/:\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				before := tree(t, outside)
				target := outside
				if relative {
					target = strings.Repeat("../", 20) + outside
				}
				link := filepath.Join(root, name)
				if err := os.RemoveAll(link); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(target, link); err != nil {
					t.Fatal(err)
				}
				e := boxes.Open(t, t.TempDir())
				rec, err := boxes.Create(t.Context(), e, boxes.NextID(root), root)
				if err != nil && !fault.Is(err, fault.InvalidArgument) {
					t.Errorf("got %v", err)
				}
				if err == nil {
					b := &boxes.Box{Record: rec, Engine: e}
					if out := b.Sh(t, "ls /"+name+"/; echo x >/"+name+"/x; cat /"+name+"/passwd; id outside"); strings.Contains(out, "outside:x") || strings.Contains(out, "uid=7") {
						t.Errorf("the box sees the host's: %q", out)
					}
					if err := e.Remove(t.Context(), rec.ID, true); err != nil {
						t.Error(err)
					}
				}
				if tree(t, outside) != before {
					t.Error("something outside has changed")
				}
			})
		}
	}
}

// Devices in the tree open nothing, and set-user-id programs change nobody.
func TestRootfsDevicesAndSetuid(t *testing.T) {
	t.Parallel()
	root := rootfs.Busybox(t)
	for name, node := range map[string]struct{ mode, major, minor uint32 }{
		"null": {unix.S_IFCHR, 1, 3}, "disk": {unix.S_IFBLK, 8, 0}, "mem": {unix.S_IFCHR, 1, 1},
	} {
		path := filepath.Join(root, "tmp", name)
		if err := unix.Mknod(path, node.mode|0o666, int(unix.Mkdev(node.major, node.minor))); err != nil {
			t.Fatal("needs root: ", err)
		}
	}
	data, err := os.ReadFile(filepath.Join(root, "bin/busybox"))
	if err != nil {
		t.Fatal(err)
	}
	id := filepath.Join(root, "bin/id")
	_ = os.Remove(id)
	if err := os.WriteFile(id, data, 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	if err := syscall.Chmod(id, 0o4755); err != nil {
		t.Fatal(err)
	}
	b := boxes.On(t, root)
	for _, name := range []string{"null", "disk", "mem"} {
		if out := b.Sh(t, "head -c 1 /tmp/"+name+" && echo read; echo x >/tmp/"+name+" && echo written"); !strings.Contains(out, "Permission denied") || strings.Contains(out, "read\n") || strings.Contains(out, "written") {
			t.Errorf("%s: %q", name, out)
		}
	}
	if out, _ := b.Output(t, options.Exec{Cmd: []string{"id", "-u"}, User: "user"}); out != "1000\n" {
		t.Errorf("a set-user-id program of the tree changed its user to %q", out)
	}
	b.Sh(t, "cp /bin/busybox /tmp/id; chmod 4755 /tmp/id")
	if out, _ := b.Output(t, options.Exec{Cmd: []string{"/tmp/id", "-u"}, User: "user"}); out != "1000\n" {
		t.Errorf("a set-user-id program of the box changed its user to %q", out)
	}
}

// The directories that no box may stand on.
func TestRootfsRefused(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.Open(t, home)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{"/", "/../", "/nosuchfolder", file, home, filepath.Dir(home), filepath.Join(home, "engine"), link, filepath.Join(file, "x")} {
		if _, err := boxes.Create(t.Context(), e, boxes.NextID(root), root); !fault.Is(err, fault.InvalidArgument) {
			t.Errorf("%s: got %v", root, err)
		}
	}
	if recs, err := e.List(t.Context()); err != nil || len(recs) != 0 {
		t.Errorf("left: %v, %v", recs, err)
	}
}

// Of accounts of 1 GB the first are known. Reading them takes no memory to
// speak of: the box has little.
func TestGiantAccounts(t *testing.T) {
	t.Parallel()
	root := rootfs.Busybox(t)
	for name, last := range map[string]string{"etc/passwd": "late:x:7:7::/:/bin/sh\n", "etc/group": "late:x:7:user\n"} {
		if err := writeAt(filepath.Join(root, name), "\n"+last, 1<<30); err != nil {
			t.Fatal(err)
		}
	}
	b := boxes.On(t, root)
	for user, want := range map[string]string{"user": "1000:1000 \n", "user:nogroup": "1000:65534 \n", "1000:7": "1000:7 \n"} {
		out, _ := b.Output(t, options.Exec{Cmd: []string{"sh", "-c", "grep -E '^(Uid|Gid)' /proc/self/status | awk '{printf \"%s%s\", s, $2; s=\":\"} END {print \" \"}'"}, User: user})
		if out != want {
			t.Errorf("%s is %q, want %q", user, out, want)
		}
	}
	for _, user := range []string{"late", "user:late"} {
		if _, s := b.Output(t, options.Exec{Cmd: []string{"true"}, User: user}); s.Status == api.ExecSucceeded {
			t.Errorf("%s, a gigabyte down, is known", user)
		}
	}
	b.Lives(t)
}

func writeAt(path, text string, at int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(text), at)
	return errors.Join(err, f.Close())
}
