// Package snapshot_test tries snapshots of boxes, and what is made of them.
package snapshot_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/fault"
	"sandbox/core/image"
	"sandbox/core/local"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/frozen"
	"sandbox/test/leak"
	"sandbox/test/programs"
	"sandbox/test/rootfs"
)

func TestMain(m *testing.M) { leak.Main(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// home is a home with the image "base", a busybox.
type home struct {
	*local.Host
	t testing.TB
}

func newHome(t testing.TB) home {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("needs root: boxes are made of namespaces, mounts and cgroups")
	}
	dir := t.TempDir()
	// A box that is kept ready has a directory, too, which looks like one that was left.
	must(t, os.WriteFile(filepath.Join(dir, "config.toml"), []byte("pool = 0\n"), 0o600))
	return openHome(t, dir, true)
}

func openHome(t testing.TB, dir string, fresh bool) home {
	t.Helper()
	host, err := local.Open(local.Config{Home: dir, HelperDir: programs.Dir()})
	must(t, err)
	h := home{host, t}
	t.Cleanup(func() { must(t, host.Close(context.Background())) })
	if fresh {
		_, err = host.Images.Import(t.Context(), "base", rootfs.Busybox(t), nil)
		must(t, err)
	}
	return h
}

// box makes a box, which is removed with the test.
func (h home) box(image string, change ...func(*options.Box)) *core.Box {
	h.t.Helper()
	o := options.Defaults()
	o.Image, o.CPUs, o.MemoryMiB, o.Network, o.AutoRemove = image, 1, 64, options.NetworkNone, false
	for _, c := range change {
		c(&o)
	}
	b, _, err := h.Create(h.t.Context(), o)
	must(h.t, err)
	h.t.Cleanup(func() {
		if err := b.Remove(context.Background(), true); err != nil && !fault.Is(err, fault.BoxNotFound) {
			h.t.Error(err)
		}
	})
	return b
}

// sh runs a script in a box and returns what it printed.
func (h home) sh(b *core.Box, script string) string {
	h.t.Helper()
	out, _ := boxes.Output(h.t, h.Engine, b.ID(), options.Exec{Cmd: []string{"sh", "-c", script}})
	return out
}

func (h home) stop(b *core.Box) {
	h.t.Helper()
	_, err := b.Stop(h.t.Context(), 0)
	must(h.t, err)
}

func (h home) start(b *core.Box) {
	h.t.Helper()
	_, err := b.Start(h.t.Context())
	must(h.t, err)
}

func (h home) snapshot(b *core.Box, name string) api.Snapshot {
	h.t.Helper()
	s, err := b.Snapshot(h.t.Context(), name)
	must(h.t, err)
	return s
}

// The files that a box makes, and how it tells of them. One is a file of the image that is
// removed, one a directory of the image that is replaced.
const (
	fill = `mkdir -p /d/e && cd /d && echo one >one && ln one two && ln -s one link && mkfifo pipe &&
		chown 1000:100 one && cp /bin/busybox suid && chown 7:8 suid && chmod 4755 suid && chmod 1777 e && chown 65534:65534 e &&
		dd if=/dev/zero of=sparse bs=1 count=1 seek=10485759 2>/dev/null && touch -d '2001-02-03 04:05:06' one &&
		rm /etc/group && rm -r /usr/bin && mkdir /usr/bin && echo new >/usr/bin/new`
	tell = `cd /d && stat -c '%n %F %a %u:%g %h %s %Y' . e one two link suid sparse pipe | sed 's/^\. directory \(.*\) [0-9]*$/. \1/;s/^\(e directory.*\|pipe.*\|link.*\|suid.*\|sparse.*\) [0-9]*$/\1/' &&
		cat one && readlink link && test $(du -k sparse | cut -f1) -lt 100 && ls /etc/group 2>&1; ls /usr/bin`
)

// kinds are the boxes whose disks are taken in different ways.
var kinds = map[string]func(o *options.Box){
	"a directory":      func(*options.Box) {},
	"a disk of a size": func(o *options.Box) { o.DiskSizeGB = 1 },
	"passing":          func(o *options.Box) { o.AutoRemove = true },
}

// ofEachKind tries something with a box of each kind, each in a home of its own.
func ofEachKind(t *testing.T, try func(t *testing.T, h home, b *core.Box, kind string)) {
	t.Helper()
	for kind, change := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			try(t, h, h.box("base", change), kind)
		})
	}
}

// A box that is made of a snapshot has the files of the first one, with all that belongs to
// them; and the first one goes on as if nothing had happened.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	for kind, change := range kinds {
		for state, prepare := range map[string]func(h home, b *core.Box){
			"running": func(home, *core.Box) {},
			"paused":  func(h home, b *core.Box) { _, err := b.Pause(t.Context(), false); must(h.t, err) },
			"stopped": func(h home, b *core.Box) { h.stop(b) },
		} {
			if kind == "passing" && state == "stopped" {
				continue // nothing is left of it
			}
			t.Run(kind+", "+state, func(t *testing.T) {
				t.Parallel()
				h := newHome(t)
				b := h.box("base", change)
				h.sh(b, fill)
				want := h.sh(b, tell)
				if !strings.Contains(want, "one regular file 644 1000:100 2 4 981173106") {
					t.Fatalf("the box tells %q", want)
				}
				prepare(h, b)
				taken := h.snapshot(b, "")
				if (taken.PausedMS > 0) != (state == "running") || taken.Box != b.ID() || len(taken.Layers) != 2 {
					t.Errorf("taken: %+v", taken)
				}
				first := h.box(taken.Name)
				if got := h.sh(first, tell); got != want {
					t.Errorf("a box of the snapshot tells\n%swant\n%s", got, want)
				}
				h.sh(first, "echo changed >/d/one; rm -r /d/e")
				switch state {
				case "stopped":
					h.start(b)
				case "paused":
					_, err := b.Resume(t.Context())
					must(t, err)
				}
				if got := h.sh(b, tell); got != want {
					t.Errorf("the box itself tells\n%swant\n%s", got, want)
				}
				if got := h.sh(h.box(taken.Name, change), tell); got != want {
					t.Errorf("a second box of the snapshot tells\n%swant\n%s", got, want)
				}
			})
		}
	}
}

// Snapshots of snapshots stand on each other, and what stands on something keeps it.
func TestTree(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	b := h.box("base", func(o *options.Box) { o.Name = "worker" })
	for i := range 3 {
		h.sh(b, fmt.Sprintf("echo %d >/file%d", i, i))
		h.stop(b)
		h.snapshot(b, fmt.Sprintf("s%d", i))
		h.start(b)
	}
	if got := h.sh(b, "cat /file*"); got != "0\n1\n2\n" {
		t.Errorf("the box has %q", got)
	}
	child := h.box("s1")
	if got := h.sh(child, "cat /file*"); got != "0\n1\n" {
		t.Errorf("a box of the second snapshot has %q", got)
	}
	h.stop(child)
	grandchild := h.snapshot(child, "grandchild")
	tree, err := h.Snapshots(t.Context(), "")
	must(t, err)
	base, err := h.Images.Inspect("base")
	must(t, err)
	ids := map[string]string{base.ID: "base"}
	var lines []string
	for _, n := range tree {
		ids[n.ID] = n.Name
		lines = append(lines, fmt.Sprint(n.Name, "<", ids[n.Parent], len(n.Layers), n.AddedBytes > 0, n.Boxes))
	}
	want := fmt.Sprintf("s0:latest<base2 true [%[1]s worker] s1:latest<s0:latest3 true [%[1]s worker] s2:latest<s1:latest4 true [worker] grandchild:latest<s1:latest4 true [%[1]s]", child.ID())
	if got := strings.Join(lines, " "); got != want {
		t.Errorf("the tree is\n%s, want\n%s", got, want)
	}
	if s1, err := h.Images.Describe("s1"); err != nil || s1.Size != base.Size+tree[0].AddedBytes+tree[1].AddedBytes || tree[1].Size != s1.Size {
		t.Errorf("the second snapshot has %d bytes, %v, and %d in the tree", s1.Size, err, tree[1].Size)
	}
	if err := h.Images.Remove(t.Context(), "s1", false); !fault.Is(err, fault.InvalidState) {
		t.Errorf("a snapshot with a box on it is removed: %v", err)
	}
	must(t, h.Images.Remove(t.Context(), "s1", true))
	must(t, h.Images.Remove(t.Context(), "base", true))
	_, err = h.Images.Prune(t.Context(), true)
	must(t, err)
	h.start(child)
	if got := h.sh(child, "cat /file*"); got != "0\n1\n" {
		t.Errorf("after its snapshot was removed a box has %q", got)
	}
	if got := h.sh(h.box(grandchild.Name), "cat /file*"); got != "0\n1\n" {
		t.Errorf("a box of the grandchild has %q", got)
	}
	_, err = b.Snapshot(t.Context(), "s2")
	if !fault.Is(err, fault.AlreadyExists) {
		t.Errorf("a name that is taken: %v", err)
	}
}

// What a box has left of a snapshot that was removed goes with the box, and its size is told.
func TestPrune(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, h home, b *core.Box, kind string) {
		if kind == "passing" { // it is gone once it is stopped
			return
		}
		h.sh(b, "head -c 1000000 /dev/urandom >/bulk; sync")
		h.stop(b)
		h.snapshot(b, "gone")
		must(t, h.Images.Remove(t.Context(), "gone", true))
		if done, err := h.Images.Prune(t.Context(), true); err != nil || done.Layers != 0 {
			t.Errorf("from below a box went %+v, %v", done, err)
		}
		must(t, b.Remove(t.Context(), true))
		if done, err := h.Images.Prune(t.Context(), false); err != nil || done.Layers != 1 || done.Bytes < 1_000_000 {
			t.Errorf("pruned %+v, %v", done, err)
		}
	})
}

// A rollback gives a box the disk of a snapshot, whatever it did since.
func TestRollback(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, h home, b *core.Box, kind string) {
		h.sh(b, "echo good >/file; mkdir /d")
		h.snapshot(b, "good")
		h.sh(b, "echo bad >/file; rm -r /d /bin/vi; nohup sleep 1000 >/dev/null 2>&1 &")
		rec, err := b.Rollback(t.Context(), "good")
		must(t, err)
		if rec.Status != api.Running {
			t.Errorf("after the rollback it is %s", rec.Status)
		}
		const look = "cat /file; ls -d /d /bin/vi; cat /proc/[0-9]*/comm | grep sleep; echo more >>/file"
		if got := h.sh(b, look); got != "good\n/bin/vi\n/d\n" {
			t.Errorf("after the rollback: %q", got)
		}
		if kind == "passing" {
			return
		}
		h.stop(b)
		rec, err = b.Rollback(t.Context(), "good")
		must(t, err)
		if rec.Status != api.Stopped {
			t.Errorf("a box that was stopped is %s", rec.Status)
		}
		h.start(b)
		if got := h.sh(b, look); got != "good\n/bin/vi\n/d\n" {
			t.Errorf("after the second rollback: %q", got)
		}
	})
}

// Clones are boxes like the first one, but for what is asked for otherwise.
func TestClone(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	b := h.box("base", func(o *options.Box) {
		o.Name, o.Env, o.Labels, o.Network = "first", map[string]string{"A": "1"}, map[string]string{"k": "v"}, options.NetworkIsolated
		o.Ports = []options.Port{{GuestPort: 80, Protocol: options.ProtocolTCP}}
	})
	h.sh(b, "echo cloned >/file")
	recs, err := b.Clone(t.Context(), options.Clone{N: 3, NamePrefix: "copy", Options: []byte(`{"memory_mib":96,"env":{"B":"2"}}`)})
	must(t, err)
	ports := map[int]bool{}
	for i, rec := range recs {
		c := h.At(rec.ID)
		if got := h.sh(c, "cat /file; echo $A$B"); got != "cloned\n2\n" {
			t.Errorf("clone %d has %q", i, got)
		}
		o := rec.Options
		if o.Name != fmt.Sprint("copy-", i+1) || o.MemoryMiB != 96 || o.CPUs != 1 || o.Labels["k"] != "v" || len(o.Ports) != 1 || o.Ports[0].HostPort == 0 || ports[o.Ports[0].HostPort] {
			t.Errorf("clone %d is %+v", i, o)
		}
		ports[o.Ports[0].HostPort] = true
	}
	before, err := h.Snapshots(t.Context(), "")
	must(t, err)
	if _, err := b.Clone(t.Context(), options.Clone{N: 2, NamePrefix: "copy"}); !fault.Is(err, fault.AlreadyExists) {
		t.Errorf("names that are taken: %v", err)
	}
	if after, err := h.Snapshots(t.Context(), ""); err != nil || len(after) != len(before) {
		t.Errorf("a clone that failed left its snapshot: there are %d snapshots, %v, and were %d", len(after), err, len(before))
	}
	if got := h.sh(b, "cat /file"); got != "cloned\n" {
		t.Errorf("after a clone that failed the box has %q", got)
	}
	if _, err := b.Clone(t.Context(), options.Clone{Options: []byte(`{"memory_mib":1}`)}); !fault.Is(err, fault.InvalidArgument) {
		t.Errorf("bad options: %v", err)
	}
	all, err := h.List(t.Context())
	must(t, err)
	if len(all) != 4 {
		t.Errorf("there are %d boxes, and not 4", len(all))
	}
	for _, rec := range recs {
		must(t, h.At(rec.ID).Remove(t.Context(), true))
	}
}

// What is refused leaves the box as it was.
func TestRefused(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	b, other := h.box("base"), h.box("base")
	h.snapshot(other, "others")
	outside := h.box("", func(o *options.Box) { o.Image, o.RootfsPath = "", rootfs.Busybox(t) })
	gone := h.At("box_aaaaaaaaaaaaaaaaaaaa")
	for name, tt := range map[string]struct {
		do   func() error
		want fault.Kind
	}{
		"the snapshot of another box": {func() error { _, err := b.Rollback(t.Context(), "others"); return err }, fault.InvalidArgument},
		"a rollback to an image":      {func() error { _, err := b.Rollback(t.Context(), "base"); return err }, fault.InvalidArgument},
		"a rollback to nothing":       {func() error { _, err := b.Rollback(t.Context(), "nothing"); return err }, fault.ImageNotFound},
		"a diff from another box's":   {func() error { _, err := b.Diff(t.Context(), options.Diff{From: "others"}); return err }, fault.InvalidArgument},
		"a bad name":                  {func() error { _, err := b.Snapshot(t.Context(), "../x"); return err }, fault.InvalidArgument},
		"a name that is taken":        {func() error { _, err := b.Snapshot(t.Context(), "base"); return err }, fault.AlreadyExists},
		"a directory of the host":     {func() error { _, err := outside.Snapshot(t.Context(), ""); return err }, fault.Unsupported},
		"no box":                      {func() error { _, err := gone.Snapshot(t.Context(), ""); return err }, fault.BoxNotFound},
		"a rollback of no box":        {func() error { _, err := gone.Rollback(t.Context(), "others"); return err }, fault.InvalidArgument},
	} {
		if err := tt.do(); !fault.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := h.sh(b, "echo lives"); got != "lives\n" {
		t.Errorf("the box says %q", got)
	}
}

// A snapshot for which there is no room on the disk leaves the box as it was and nothing else.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for kind, change := range map[string]func(o *options.Box){"a directory": kinds["a directory"], "a disk of a size": kinds["a disk of a size"]} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=300m,mode=700"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
			h := openHome(t, dir, true)
			b := h.box("base", change, func(o *options.Box) { o.MemoryMiB = 512 }) // what is on a tmpfs counts
			h.sh(b, "mkdir /d; for i in $(seq 40); do head -c 4000000 /dev/urandom >/d/$i; done; sync")
			want := h.sh(b, "cat /d/* | md5sum")
			_, err := b.Snapshot(t.Context(), "full")
			if !fault.Is(err, fault.Storage) {
				t.Errorf("a full disk: %v", err)
			}
			h.onlyLayers()
			if left, err := filepath.Glob(filepath.Join(dir, "boxes", b.ID(), "taking")); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
			if got := h.sh(b, "cat /d/* | md5sum; touch /more; ls /more"); got != want+"/more\n" {
				t.Errorf("the box has %q, want %q", got, want)
			}
			if all, err := h.Snapshots(t.Context(), ""); err != nil || len(all) > 0 {
				t.Errorf("there are %v, %v", all, err)
			}
			h.stop(b) // then it needs no room
			h.snapshot(b, "stopped")
			if got := h.sh(h.box("stopped"), "cat /d/* | md5sum"); got != want {
				t.Errorf("a box of a later snapshot has %q, want %q", got, want)
			}
		})
	}
}

// A snapshot whose layer can't be stored leaves the box as it was, and the next one works.
func TestNotStored(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, h home, b *core.Box, kind string) {
		if kind == "passing" { // it is gone once it is stopped
			return
		}
		h.sh(b, "echo kept >/file; sync")
		h.stop(b)
		thaw := frozen.Dir(t, filepath.Join(h.Home, "layers"))
		if _, err := b.Snapshot(t.Context(), "not"); !fault.Is(err, fault.Storage) {
			t.Errorf("got %v, want storage_error", err)
		}
		thaw()
		if left, err := filepath.Glob(filepath.Join(record.Dir(h.Home, b.ID()), "taking*")); err != nil || left != nil {
			t.Errorf("%v stays, %v", left, err)
		}
		h.start(b)
		if got := h.sh(b, "cat /file"); got != "kept\n" {
			t.Errorf("the box has %q", got)
		}
		h.stop(b)
		h.snapshot(b, "then")
		if got := h.sh(h.box("then"), "cat /file"); got != "kept\n" {
			t.Errorf("a box of the next snapshot has %q", got)
		}
	})
}

// A snapshot of a box that is being removed is of the whole box, or there is none.
func TestWhileRemoved(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for i := range 12 {
		b := h.box("base")
		h.sh(b, "echo whole >/file; head -c 1000000 /dev/urandom >/bulk")
		if i%2 == 0 {
			h.stop(b)
		}
		name, removed := fmt.Sprint("s", i), make(chan error, 1)
		go func() { removed <- b.Remove(context.WithoutCancel(t.Context()), true) }()
		_, err := b.Snapshot(t.Context(), name)
		must(t, <-removed)
		switch {
		case err == nil:
			if got := h.sh(h.box(name), "cat /file"); got != "whole\n" {
				t.Errorf("the snapshot has %q", got)
			}
		case !fault.Is(err, fault.BoxNotFound):
			t.Errorf("a snapshot of a box that is being removed: %v", err)
		}
	}
}

// A diff tells what was added, changed and removed, from the image or from a snapshot.
func TestDiff(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, h home, b *core.Box, kind string) {
		h.sh(b, "mkdir -p /d/e && echo 1 >/d/e/f && rm /etc/group && echo x >>/etc/passwd && rm -r /usr/bin && mkdir /usr/bin && echo new >/usr/bin/new")
		first := diff(t, b, "", "")
		if want := "added /d, added /d/e, added /d/e/f, changed /etc, removed /etc/group, changed /etc/passwd, changed /usr, changed /usr/bin, "; !strings.HasPrefix(first, want) || !strings.Contains(first, ", added /usr/bin/new,") {
			t.Errorf("since it was made: %s", first)
		}
		h.snapshot(b, "one")
		if got := diff(t, b, "one", ""); got != "" {
			t.Errorf("nothing was done since the snapshot, but %s", got)
		}
		h.sh(b, "rm /d/e/f; echo 2 >/d/e/g; chmod 600 /usr/bin/new; echo back >/etc/group")
		if got := diff(t, b, "one", ""); got != "changed /d/e, removed /d/e/f, added /d/e/g, changed /etc, added /etc/group, changed /usr/bin/new" {
			t.Errorf("since the snapshot: %s", got)
		}
		if got := diff(t, b, "one", options.FilePageToken("d/e/g")); got != "changed /etc, added /etc/group, changed /usr/bin/new" {
			t.Errorf("the second page: %s", got)
		}
		page, err := b.Diff(t.Context(), options.Diff{From: "one", PageSize: 3})
		must(t, err)
		if len(page.Changes) != 3 || page.NextPageToken == nil || *page.NextPageToken != options.FilePageToken("d/e/g") {
			t.Errorf("a page of 3: %v", page)
		}
		if kind == "passing" {
			return
		}
		h.stop(b)
		if got := diff(t, b, "one", options.FilePageToken("d/e/g")); got != "changed /etc, added /etc/group, changed /usr/bin/new" {
			t.Errorf("of a box that is stopped: %s", got)
		}
	})
}

// A diff does not tell of what every box has: its own /dev, /proc and /sys, what is written
// into /etc and the mount points of volumes. It tells of what a box does with these.
func TestDiffOfNothing(t *testing.T) {
	t.Parallel()
	for kind, change := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			b := h.box("base", change, func(o *options.Box) {
				o.Network = options.NetworkIsolated
				o.Volumes = []options.Volume{{HostPath: t.TempDir(), GuestPath: "/usr/new/deep"}, {HostPath: t.TempDir(), GuestPath: "/usr/bin/other"}}
			})
			if got := diff(t, b, "", ""); got != "" {
				t.Errorf("of a new box: %s", got)
			}
			if kind != "passing" {
				h.stop(b)
				h.start(b)
				if got := diff(t, b, "", ""); got != "" {
					t.Errorf("after a restart: %s", got)
				}
			}
			for _, tt := range []struct{ script, want string }{
				{"echo '10.0.0.1 other' >>/etc/hosts", "changed /etc/hosts"},
				{"cp /etc/hosts /etc/new; mv /etc/new /etc/hosts", "changed /etc, changed /etc/hosts"},
				{"chmod 600 /etc/hostname", "changed /etc, changed /etc/hostname, changed /etc/hosts"},
				{"chmod 644 /etc/hostname; rm /etc/hosts", "changed /etc, removed /etc/hosts"},
				{"cp /etc/hostname /etc/new; mv /etc/new /etc/hostname; chmod 700 /usr/new", "changed /etc, removed /etc/hosts, added /usr/new"},
				{"chmod 755 /usr/new; touch /usr/new/mine; echo >/dev/null; touch /dev/shm/x", "changed /etc, removed /etc/hosts, added /usr/new/mine"},
			} {
				h.sh(b, tt.script)
				if got := diff(t, b, "", ""); got != tt.want {
					t.Errorf("after %s: %s", tt.script, got)
				}
			}
		})
	}
}

func diff(t *testing.T, b *core.Box, from, after string) string {
	t.Helper()
	page, err := b.Diff(t.Context(), options.Diff{From: from, PageToken: after})
	must(t, err)
	if page.NextPageToken != nil {
		t.Errorf("there are more than %d changes", len(page.Changes))
	}
	var lines []string
	for _, c := range page.Changes {
		lines = append(lines, c.Kind+" "+c.Path)
	}
	return strings.Join(lines, ", ")
}

// A snapshot goes out as an archive and comes in again with all that its files have, and
// with the same digest each time.
func TestExport(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, h home, b *core.Box, _ string) {
		h.sh(b, fill)
		want := h.sh(b, tell)
		taken := h.snapshot(b, "out")
		var archives [2]bytes.Buffer
		for i := range archives {
			must(t, h.Images.Export(t.Context(), taken.Name, &archives[i], image.ExportOptions{}))
		}
		if !bytes.Equal(archives[0].Bytes(), archives[1].Bytes()) {
			t.Error("two exports differ")
		}
		_, err := h.Images.ImportTar(t.Context(), "in", &archives[0], nil)
		must(t, err)
		if got := h.sh(h.box("in"), tell); got != want {
			t.Errorf("a box of the import tells\n%swant\n%s", got, want)
		}
	})
}

// A process of a box goes on after a snapshot, and a time limit of it stood still.
func TestRunsOn(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	b := h.box("base")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, err := b.Exec(ctx, options.Exec{Cmd: []string{"sh", "-c", "i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo $i; echo $i >/count; done"}})
	must(t, err)
	defer e.Close()
	h.snapshot(b, "mid")
	lines := 0
	status, err := e.Stream(ctx, make([]byte, core.OutputBuffer), func(_ bool, p []byte) error { lines += strings.Count(string(p), "\n"); return nil })
	must(t, err)
	if lines != 200 || status.ExitCode != 0 {
		t.Errorf("%d lines, %+v", lines, status)
	}
}
