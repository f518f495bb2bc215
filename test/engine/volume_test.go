package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandbox/core"
	"sandbox/core/engine"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/rootfs"
)

// boxWith makes a box, which ends with the test, and returns its id.
func boxWith(t *testing.T, e *engine.Client, root string, change func(*options.Box)) (string, error) {
	t.Helper()
	o := options.Defaults()
	o.RootfsPath, o.CPUs, o.MemoryMiB, o.AutoRemove = root, 1, 128, false
	change(&o)
	id := boxes.ID(t.TempDir(), 1)
	_, err := e.Create(t.Context(), core.CreateRequest{ID: id, Options: o, Image: core.Image{Layers: []string{root}}})
	t.Cleanup(func() { _ = e.Remove(context.Background(), id, true) })
	return id, err
}

// sh runs a script in a box and gives all it wrote.
func sh(t *testing.T, e *engine.Client, box, script string) string {
	t.Helper()
	out, _ := boxes.Output(t, e, box, options.Exec{Cmd: []string{"/bin/sh", "-c", script + " 2>&1"}})
	return out
}

// hostDir makes a directory of files that all belong to one owner.
func hostDir(t *testing.T, owner int, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte("host\n"), 0o600))
	}
	if owner == 0 && os.Geteuid() != 0 {
		return dir // whose owner is the root of the user's boxes
	}
	must(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, owner, owner)
	}))
	return dir
}

func ownerOf(t *testing.T, path string) uint32 {
	t.Helper()
	st, err := os.Lstat(path)
	must(t, err)
	return st.Sys().(*syscall.Stat_t).Uid
}

func TestVolumes(t *testing.T) {
	t.Parallel()
	e, root := boxes.Open(t, t.TempDir()), rootfs.Busybox(t)
	must(t, os.Symlink("/etc", filepath.Join(root, "out")))
	must(t, os.Symlink("../../../../../../etc/deep", filepath.Join(root, "climb")))
	must(t, os.Mkdir(filepath.Join(root, "etc/deep"), 0o755))
	for name, test := range map[string]struct {
		owner  int
		volume options.Volume // HostPath is below the directory
		script string
		want   string
		leaves string // a file that is then in the host's directory, of its owner
	}{
		"of a user":           {owner: 1234, volume: options.Volume{GuestPath: "/data"}, script: "cat /data/f; stat -c %u:%g /data /data/f; echo new >/data/new", want: "host\n0:0\n0:0\n", leaves: "new"},
		"of root":             {owner: 0, volume: options.Volume{GuestPath: "/data"}, script: "cat /data/f; stat -c %u /data/f; mkdir /data/new", want: "host\n0\n", leaves: "new"},
		"read-only":           {owner: 1234, volume: options.Volume{GuestPath: "/data", ReadOnly: true}, script: "cat /data/f; echo >/data/new", want: "host\n/bin/sh: can't create /data/new: Read-only file system\n"},
		"remount":             {owner: 1234, volume: options.Volume{GuestPath: "/data", ReadOnly: true}, script: "mount -o remount,rw /data; echo >/data/new", want: "mount: permission denied (are you root?)\n/bin/sh: can't create /data/new: Read-only file system\n"},
		"a file":              {owner: 1234, volume: options.Volume{HostPath: "f", GuestPath: "/etc/new/f"}, script: "cat /etc/new/f; echo host >/etc/new/f; stat -c %u /etc/new", want: "host\n0\n", leaves: "f"},
		"a read-only file":    {owner: 1234, volume: options.Volume{HostPath: "f", GuestPath: "/etc/group", ReadOnly: true}, script: "cat /etc/group; echo >/etc/group", want: "host\n/bin/sh: can't create /etc/group: Read-only file system\n"},
		"a link to a file":    {owner: 1234, volume: options.Volume{HostPath: "link", GuestPath: "/f"}, script: "test -L /f; cat /f; echo host >/f", want: "host\n", leaves: "f"},
		"a file of all users": {owner: 1234, volume: options.Volume{HostPath: "f", GuestPath: "/f"}, script: "for m in 604 600; do chmod $m /f; su -s /bin/sh nobody -c 'cat /f'; done", want: "host\ncat: can't open '/f': Permission denied\n"},
		"missing directories": {owner: 1234, volume: options.Volume{GuestPath: "/a/b/c"}, script: "stat -c %u:%a /a /a/b; cat /a/b/c/f", want: "0:755\n0:755\nhost\n"},
		"over a directory":    {owner: 0, volume: options.Volume{GuestPath: "/etc"}, script: "ls /etc", want: "f\nlink\nsub\n"},
		"through a link":      {owner: 0, volume: options.Volume{GuestPath: "/out/here"}, script: "cat /etc/here/f", want: "host\n"},
		"through a climb":     {owner: 0, volume: options.Volume{GuestPath: "/climb"}, script: "cat /etc/deep/f", want: "host\n"},
		"no set-user-id":      {owner: 0, volume: options.Volume{GuestPath: "/data"}, script: "grep ' /data ' /proc/mounts | grep -c nosuid,nodev", want: "1\n"},
		"trailing slashes":    {owner: 0, volume: options.Volume{GuestPath: "//data///x//"}, script: "cat /data/x/f", want: "host\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := hostDir(t, test.owner, "f", "sub/g")
			must(t, os.Symlink("f", filepath.Join(dir, "link")))
			test.volume.HostPath = filepath.Join(dir, test.volume.HostPath)
			box, err := boxWith(t, e, root, func(o *options.Box) { o.Volumes = []options.Volume{test.volume} })
			must(t, err)
			for range 2 { // also after a stop
				_ = os.RemoveAll(filepath.Join(dir, "new"))
				if got := sh(t, e, box, test.script); got != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
				if test.leaves != "" && ownerOf(t, filepath.Join(dir, test.leaves)) != uint32(test.owner) {
					t.Errorf("%s belongs to %d", test.leaves, ownerOf(t, filepath.Join(dir, test.leaves)))
				}
				if _, err := e.Stop(t.Context(), box, time.Second); err != nil {
					t.Fatal(err)
				}
				if _, err := e.Start(t.Context(), box); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A file that replaces the one of a volume is another file: a box sees it when it
// is started the next time.
func TestReplacedVolume(t *testing.T) {
	t.Parallel()
	e := boxes.Open(t, t.TempDir())
	dir := hostDir(t, 1234, "f", "g")
	box, err := boxWith(t, e, rootfs.Busybox(t), func(o *options.Box) {
		o.Volumes = []options.Volume{{HostPath: filepath.Join(dir, "f"), GuestPath: "/f"}}
	})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "g"), []byte("another\n"), 0o600))
	must(t, os.Rename(filepath.Join(dir, "g"), filepath.Join(dir, "f")))
	if got := sh(t, e, box, "cat /f"); got != "host\n" {
		t.Errorf("replaced: %q", got)
	}
	_, err = e.Stop(t.Context(), box, time.Second)
	must(t, err)
	_, err = e.Start(t.Context(), box)
	must(t, err)
	if got := sh(t, e, box, "cat /f"); got != "another\n" {
		t.Errorf("replaced and started: %q", got)
	}
}

// The box's other users make files in a volume that lets everybody. On the host
// they belong to numbers of the box's own range, which no other box has.
func TestVolumeOfOtherUsers(t *testing.T) {
	t.Parallel()
	e := boxes.Open(t, t.TempDir())
	dir := hostDir(t, 1234, "f")
	must(t, os.Chmod(dir, 0o777)) //nolint:gosec // for everybody
	box, err := boxWith(t, e, rootfs.Busybox(t), func(o *options.Box) {
		o.Volumes = []options.Volume{{HostPath: dir, GuestPath: "/data"}}
	})
	must(t, err)
	out, s := boxes.Output(t, e, box, options.Exec{Cmd: []string{"sh", "-c", "touch /data/user && mkdir /data/dir && touch /data/dir/f && stat -c %u:%g /data /data/user"}, User: "user"})
	if s.ExitCode != 0 || out != "0:0\n1000:1000\n" {
		t.Errorf("a user of the box: %q, %+v", out, s)
	}
	if got := sh(t, e, box, "chown nobody /data/f && rm -r /data/dir && touch /data/root && stat -c %u /data/f"); got != "65534\n" {
		t.Errorf("the box's root: %q", got)
	}
	rec, err := e.Get(t.Context(), box)
	must(t, err)
	base := ownerOf(t, fmt.Sprintf("/proc/%d/root/root", rec.PID))
	for name, owner := range map[string]uint32{"": 1234, "root": 1234, "user": base + 1000, "f": base + 65534} {
		if got := ownerOf(t, filepath.Join(dir, name)); got != owner || owner == 1000 {
			t.Errorf("%q belongs to %d on the host, want %d", name, got, owner)
		}
	}
}

// Files of others are as closed to the box's root as they are to the owner of
// the directory.
func TestVolumeOfOthers(t *testing.T) {
	t.Parallel()
	e := boxes.Open(t, t.TempDir())
	dir := hostDir(t, 1234, "own", "others")
	must(t, os.Chown(filepath.Join(dir, "others"), 4321, 4321))
	box, err := boxWith(t, e, rootfs.Busybox(t), func(o *options.Box) {
		o.Volumes = []options.Volume{{HostPath: dir, GuestPath: "/data"}}
	})
	must(t, err)
	const want = "host\ncat: can't open '/data/others': Permission denied\nchown: /data/others: Operation not permitted\n65534\n"
	if got := sh(t, e, box, "(cat /data/own; cat /data/others; chown 0 /data/others; stat -c %u /data/others)"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNestedVolumes(t *testing.T) {
	t.Parallel()
	e := boxes.Open(t, t.TempDir())
	outer, inner := hostDir(t, 1234, "outer", "in/hidden"), hostDir(t, 0, "inner")
	box, err := boxWith(t, e, rootfs.Busybox(t), func(o *options.Box) {
		o.Volumes = []options.Volume{{HostPath: inner, GuestPath: "/data/in"}, {HostPath: outer, GuestPath: "/data"}}
	})
	must(t, err)
	if got := sh(t, e, box, "ls /data /data/in"); got != "/data:\nin\nouter\n\n/data/in:\ninner\n" {
		t.Errorf("got %q", got)
	}
}

func TestBadVolumes(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e, root := boxes.Open(t, home), rootfs.Busybox(t)
	must(t, os.Symlink("/proc", filepath.Join(root, "intoproc")))
	must(t, os.Symlink("/", filepath.Join(root, "intoroot")))
	must(t, os.Symlink("/nowhere", filepath.Join(root, "dangling")))
	dir, links := hostDir(t, 0, "f"), t.TempDir()
	must(t, os.Symlink(home, filepath.Join(links, "home")))
	must(t, syscall.Mkfifo(filepath.Join(links, "fifo"), 0o600))
	again := t.TempDir()
	must(t, syscall.Mount(home, again, "", syscall.MS_BIND, ""))
	t.Cleanup(func() { must(t, syscall.Unmount(again, 0)) })
	first := options.Volume{HostPath: dir, GuestPath: "/first"}
	for name, test := range map[string]struct {
		volume options.Volume
		kind   fault.Kind
		says   string
	}{
		"missing":                 {options.Volume{HostPath: "/no/such", GuestPath: "/data"}, fault.InvalidArgument, "/no/such names no file"},
		"the host's root":         {options.Volume{HostPath: "/tmp/..", GuestPath: "/data"}, fault.InvalidArgument, "closed to boxes"},
		"the home":                {options.Volume{HostPath: home, GuestPath: "/data"}, fault.InvalidArgument, "closed to boxes"},
		"above the home":          {options.Volume{HostPath: filepath.Dir(home), GuestPath: "/data"}, fault.InvalidArgument, "closed to boxes"},
		"in the home":             {options.Volume{HostPath: home + "/engine", GuestPath: "/data"}, fault.InvalidArgument, "closed to boxes"},
		"the home's socket":       {options.Volume{HostPath: home + "/engine/" + wire.ShimSocket, GuestPath: "/data"}, fault.InvalidArgument, "neither a directory nor a file"},
		"the home, mounted":       {options.Volume{HostPath: again + "/engine", GuestPath: "/data"}, fault.InvalidArgument, "closed to boxes"},
		"a link to the home":      {options.Volume{HostPath: links + "/home/engine", GuestPath: "/data"}, fault.InvalidArgument, "closed to boxes"},
		"the stage":               {options.Volume{HostPath: "/dev", GuestPath: "/data"}, fault.InvalidArgument, "closed to boxes"},
		"a pipe":                  {options.Volume{HostPath: links + "/fifo", GuestPath: "/data"}, fault.InvalidArgument, "neither a directory nor a file"},
		"not id-mapped":           {options.Volume{HostPath: "/proc/self", GuestPath: "/data"}, fault.Unsupported, "id-mapped"},
		"over proc by a link":     {options.Volume{HostPath: dir, GuestPath: "/intoproc"}, fault.InvalidArgument, "/proc"},
		"in proc by a link":       {options.Volume{HostPath: dir, GuestPath: "/intoproc/x"}, fault.InvalidArgument, "/proc"},
		"the root by a link":      {options.Volume{HostPath: dir, GuestPath: "/intoroot"}, fault.InvalidArgument, "may not cover"},
		"a dangling link":         {options.Volume{HostPath: dir, GuestPath: "/dangling/x"}, fault.InvalidArgument, "/dangling"},
		"below a file":            {options.Volume{HostPath: dir, GuestPath: "/etc/passwd/x"}, fault.InvalidArgument, "not a directory"},
		"a directory over a file": {options.Volume{HostPath: dir, GuestPath: "/etc/passwd"}, fault.InvalidArgument, "one is a directory and the other is not"},
		"a file over a directory": {options.Volume{HostPath: dir + "/f", GuestPath: "/etc"}, fault.InvalidArgument, "one is a directory and the other is not"},
		"missing in another":      {options.Volume{HostPath: dir, GuestPath: "/first/missing"}, fault.InvalidArgument, "create it there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box, err := boxWith(t, e, root, func(o *options.Box) { o.Volumes = []options.Volume{first, test.volume} })
			if !fault.Is(err, test.kind) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %v about %q", err, test.kind, test.says)
			}
			if _, err := os.Lstat(filepath.Join(home, "boxes", box)); err == nil {
				t.Error("something is left of the box")
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("the host's directory holds %v, %v", entries, err)
			}
		})
	}
}

// TestWithin changes a directory for a link that leads out of the directory that a
// box's paths must lie in: the box does not start on it.
func TestWithin(t *testing.T) {
	t.Parallel()
	e := boxes.Open(t, t.TempDir())
	dir, outside := hostDir(t, 0), hostDir(t, 0, "secret")
	for _, name := range []string{"volume", "root"} {
		inside := filepath.Join(dir, name)
		must(t, os.CopyFS(inside, os.DirFS(rootfs.Busybox(t))))
		root, change := inside, func(o *options.Box) { o.RootfsWithin = dir }
		if name == "volume" {
			root, change = rootfs.Busybox(t), func(o *options.Box) {
				o.Volumes = []options.Volume{{HostPath: inside, GuestPath: "/v", Within: dir}}
			}
		}
		id, err := boxWith(t, e, root, change)
		must(t, err)
		_, err = e.Stop(t.Context(), id, 0)
		must(t, err)
		must(t, os.RemoveAll(inside))
		must(t, os.Symlink(outside, inside))
		if rec, err := e.Start(t.Context(), id); !fault.Is(err, fault.PermissionDenied) {
			t.Errorf("%s: %+v, %v, want permission_denied", name, rec.Status, err)
		}
	}
}
