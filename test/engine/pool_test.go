package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/core/sockets"
	"sandbox/test/boxes"
	"sandbox/test/rootfs"
)

// each is the pool with which every box that can be is made of a spare.
const each = -1

// pooled returns the request for a box whose root is an image: one that can be made
// of a spare.
func pooled(home, root string, change ...func(*options.Box)) core.CreateRequest {
	req := boxes.Request(boxes.NextID(home), root)
	req.Options.RootfsPath, req.Options.Image = "", "busybox"
	req.Options.CPUs, req.Options.MemoryMiB = 1, 64
	req.Image = core.Image{Ref: "busybox", ID: "sha256:1", Layers: []string{root}, Env: []string{"OF_IMAGE=1"}, WorkingDir: "/home", User: "1000"}
	for _, c := range change {
		c(&req.Options)
	}
	return req
}

// create makes a box and returns its record. It ends with the test.
func create(t *testing.T, e core.Engine, home string, req core.CreateRequest) record.Box {
	t.Helper()
	if _, err := e.Create(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Remove(context.WithoutCancel(t.Context()), req.ID, true) })
	rec, err := record.Open(home).Get(req.ID)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// look prints what a command can see of its box, without what the kernel sees to a
// while after the box was connected: that the link is up, and its own address.
const look = `exec 2>&1; hostname; cat /etc/hostname /etc/hosts /etc/resolv.conf; ls -la / /etc /dev /dev/pts; id; pwd; env | sort
ulimit -a; umask; nproc; df -k / /dev /dev/shm | awk '{print $1, $2}' | sed '2s/ [0-9]*$//'; cat /proc/self/uid_map /proc/self/gid_map /proc/self/cgroup
cut -d' ' -f4- /proc/self/mountinfo; grep -E '^(Cap|NoNew|Seccomp|Groups|Cpus_allowed_list)' /proc/self/status
ls /sys/class/net /proc/1 /proc/1/fd
ip addr | awk '/ scope link/ { getline; next } { sub("NO-CARRIER,", ""); print }'; ip route; grep -c ^processor /proc/cpuinfo; cat /proc/sys/user/max_user_namespaces; ps -o user,comm`

// TestSpareIsABox makes each box once from nothing and once of a spare, and wants
// both to be the same, from inside and from outside.
func TestSpareIsABox(t *testing.T) {
	t.Parallel()
	root, dir := rootfs.Busybox(t), hostDir(t, 1234, "f", "sub/g")
	for name, change := range map[string]func(*options.Box){
		"plain":    func(*options.Box) {},
		"named":    func(o *options.Box) { o.Name, o.Labels = "web-1", map[string]string{"a": "b"} },
		"hostname": func(o *options.Box) { o.Hostname = "a.example" },
		"command":  func(o *options.Box) { o.Env, o.WorkingDir, o.User = map[string]string{"X": "y"}, "/tmp", "0" },
		"limits":   func(o *options.Box) { o.MemoryMiB, o.Processes = 48, 77 },
		"no net":   func(o *options.Box) { o.Network = options.NetworkNone },
		"passing":  func(o *options.Box) { o.AutoRemove = true },
		"ports": func(o *options.Box) {
			o.Ports = []options.Port{{GuestPort: 80, Protocol: options.ProtocolTCP}, {GuestPort: 53, Protocol: options.ProtocolUDP}}
		},
		"volumes": func(o *options.Box) {
			o.Volumes = []options.Volume{
				{HostPath: dir, GuestPath: "/new/below/fixed", ReadOnly: true}, {HostPath: filepath.Join(dir, "f"), GuestPath: "/etc/file"},
				{HostPath: dir, GuestPath: "/home"}, {HostPath: dir, GuestPath: "/home/sub"}, {HostPath: root, GuestPath: "/of-root"},
			}
		},
		"disk": func(o *options.Box) { o.DiskSizeGB = 1 },
		"directory": func(o *options.Box) {
			o.RootfsPath, o.RootfsWithin, o.Image = root, filepath.Dir(root), ""
		},
		"all": func(o *options.Box) {
			o.RootfsPath, o.Image, o.DiskSizeGB, o.AutoRemove = root, "", 1, true
			o.Volumes = []options.Volume{{HostPath: dir, GuestPath: "/data", ReadOnly: true}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen [2][]string
			for i, size := range []int{0, each} {
				home := t.TempDir()
				e := boxes.OpenConfig(t, engine.Config{Home: home, Pool: size})
				rec := create(t, e, home, pooled(home, root, change))
				if (rec.Spare != "") != (size == each) {
					t.Errorf("with a pool of %d the box has the slot %q", size, rec.Spare)
				}
				out, _ := boxes.Output(t, e, rec.ID, options.Exec{Cmd: []string{"sh", "-c", look}})
				seen[i] = lines(rec, out+limitsOf(t, rec)+shown(t, rec))
				if o := rec.Options; o.DiskSizeGB != 0 || o.RootfsPath != "" || len(o.Volumes) > 0 {
					slices.Sort(seen[i]) // as those of another image
				}
				published(t, rec)
				locked(t, rec)
			}
			same(t, seen[0], seen[1])
		})
	}
}

// same wants two lists of what was seen of boxes to be equal: of one that was made from
// nothing and of one that was made of a spare.
func same(t *testing.T, fresh, spare []string) {
	t.Helper()
	without := func(all, some []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(all), func(line string) bool { return slices.Contains(some, line) }), "\n")
	}
	if !slices.Equal(fresh, spare) {
		t.Errorf("only from nothing:\n%s\nonly of a spare:\n%s", without(fresh, spare), without(spare, fresh))
	}
}

// A spare of one image becomes a box of another one, which can't be told from one
// that was made from nothing.
func TestSpareOfAnotherImage(t *testing.T) {
	t.Parallel()
	first, second := rootfs.Busybox(t), rootfs.Busybox(t)
	for _, dir := range []string{"sys", "home/only-here"} { // it has no /proc and no /dev: the box gets them
		if err := os.MkdirAll(filepath.Join(second, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, passing := range []bool{false, true} {
		var seen [2][]string
		for i := range seen {
			home := t.TempDir()
			e := boxes.OpenConfig(t, engine.Config{Home: home, Pool: i})
			slot := ""
			if i == 1 {
				slot = spareOf(t, e, home, pooled(home, first))
			}
			rec := create(t, e, home, pooled(home, second, func(o *options.Box) { o.AutoRemove, o.User = passing, "0" }))
			if rec.Spare != slot {
				log, _ := os.ReadFile(filepath.Join(home, "engine", "shim.log"))
				t.Errorf("the box has the slot %q, want %q\n%s", rec.Spare, slot, log)
			}
			out, _ := boxes.Output(t, e, rec.ID, options.Exec{Cmd: []string{"sh", "-c", look + "; ls /home /sys; echo hi > /kept; tty; sync"}, TTY: true})
			seen[i] = lines(rec, out+limitsOf(t, rec)+shown(t, rec))
			slices.Sort(seen[i]) // the kernel lists mounts in the order in which they were made
			boxes.Await(t, "only the box's own layer", func() bool {
				_, err := os.Stat(filepath.Join(record.Dir(home, rec.ID), "spare"))
				return errors.Is(err, os.ErrNotExist)
			})
			for flags, locked := range map[string]bool{"nosuid,nodev": false, "suid,nodev": true, "nosuid,dev": true} {
				if said, err := asInit(rec, "mount", "-o", "remount,bind,"+flags, "none", "/"); (err != nil) != locked {
					t.Errorf("mounting the root again with %s: %s, %v; want it refused: %v", flags, said, err, locked)
				}
			}
			if text, err := os.ReadFile(filepath.Join(record.Dir(home, rec.ID), "upper", "kept")); err != nil || string(text) != "hi\n" {
				t.Errorf("what the box wrote is %q, %v", text, err)
			}
		}
		same(t, seen[0], seen[1])
	}
}

// An image is removed while a spare becomes a box of it: after its layers were looked at, and
// before the box's record keeps them. Such a box is not made.
func TestSpareOfAnImageThatGoes(t *testing.T) {
	t.Parallel()
	home, root := t.TempDir(), rootfs.Busybox(t)
	e := boxes.OpenConfig(t, engine.Config{Home: home, Pool: each})
	create(t, e, home, pooled(home, root)) // makes the directory that is watched
	for range 50 {                         // to rename it in time is left to chance
		ended := goneOnceMoved(t, filepath.Join(home, "boxes"), root)
		req := pooled(home, root)
		_, err := e.Create(t.Context(), req)
		ended()
		if err == nil {
			must(t, e.Remove(t.Context(), req.ID, true))
			continue
		}
		if !fault.Is(err, fault.Image) || !strings.Contains(err.Error(), "was removed while") {
			t.Errorf("%v, want image_error", err)
		}
		if _, err := record.Open(home).Get(req.ID); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a record is left: %v", err)
		}
		return
	}
	t.Error("50 boxes were made of an image that had gone")
}

// goneOnceMoved renames root when something is moved into dir. ended undoes that.
func goneOnceMoved(t *testing.T, dir, root string) (ended func()) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	must(t, err)
	events := os.NewFile(uintptr(fd), "events")
	_, err = unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_TO)
	must(t, err)
	moved := make(chan error, 1)
	go func() {
		_, err := events.Read(make([]byte, 4096))
		if err == nil {
			err = os.Rename(root, root+".gone")
		}
		moved <- err
	}()
	return func() {
		t.Helper()
		must(t, events.SetReadDeadline(time.Now()))
		switch err := <-moved; {
		case err == nil:
			must(t, os.Rename(root+".gone", root))
		case !errors.Is(err, os.ErrDeadlineExceeded):
			t.Error(err)
		}
		must(t, events.Close())
	}
}

// spareOf makes a box, and returns the slot of the spare that the shim then makes,
// when it is ready. The box ends with the test.
func spareOf(t *testing.T, e core.Engine, home string, req core.CreateRequest) string {
	t.Helper()
	maker := boxes.OpenConfig(t, engine.Config{Home: home, Pool: 1})
	_, err := maker.Create(t.Context(), req)
	t.Cleanup(func() { _ = e.Remove(context.WithoutCancel(t.Context()), req.ID, true) })
	if err != nil {
		t.Fatal(err)
	}
	slot := awaitSpares(t, home, 1)[0]
	if err := maker.Close(); err != nil { // waits until it is ready
		t.Fatal(err)
	}
	return slot
}

// limitsOf returns the limits in the groups of a box.
func limitsOf(t *testing.T, rec record.Box) (all string) {
	t.Helper()
	for _, pattern := range []string{"/sys/fs/cgroup/sandbox/%s", "/sys/fs/cgroup/*/sandbox/%s"} {
		for _, below := range []string{"", "/execs", "/init"} {
			for _, file := range []string{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max", "memory.swap.max", "pids.max", "cpu.cfs_quota_us", "cpu.max", "cpuset.cpus", "devices.list"} {
				paths, _ := filepath.Glob(fmt.Sprintf(pattern, rec.Slot()) + below + "/" + file) // only a bad pattern fails
				for _, path := range paths {
					text, err := os.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
					if file == "cpuset.cpus" { // which ones is left to chance
						text = []byte(fmt.Sprint(len(text)))
					}
					all += path + " " + string(text) + "\n"
				}
			}
		}
	}
	return all
}

// shown returns what is shown of a box.
func shown(t *testing.T, rec record.Box) string {
	t.Helper()
	rec.Options.Ports = slices.Clone(rec.Options.Ports)
	for i := range rec.Options.Ports {
		rec.Options.Ports[i].HostPort = 0
	}
	rec.CreatedAt, rec.UpdatedAt, rec.StartedAt, rec.PID = time.Time{}, time.Time{}, nil, 0
	text, err := json.Marshal(rec.Record)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// varying is what differs between any two boxes: addresses, times, numbers of
// interfaces, mounts and descriptors, links of /proc, ids of execs, and the CPUs of one that has not all of them.
var varying = regexp.MustCompile(`(?m)10\.2\d\d\.\d+\.\d+|fd73:[0-9a-f:]+|fe80:[0-9a-f:]+|[A-Z][a-z]{2} +\d+ \d\d:\d\d|@if\d+|/fd/\d+|^\d+: |Cpus_allowed_list:\t\d+|/\.cpuinfo-[0-9a-f]+|master:\d+|exec_[a-z2-7]{20}|^d\S+ +\d+ `)

// lines returns the lines of a text about a box, without what differs between any two.
func lines(rec record.Box, text string) []string {
	text = strings.NewReplacer(rec.ID, "ID", rec.Slot(), "ID", fmt.Sprint(rec.UIDBase), "BASE", fmt.Sprint(rec.UIDBase+5), "TERMINALS").Replace(text)
	return strings.Split(varying.ReplaceAllString(text, "-"), "\n")
}

// published wants a box to answer at the ports that it publishes.
func published(t *testing.T, rec record.Box) {
	t.Helper()
	for _, p := range rec.Options.Ports {
		boxSpace(t, rec.Record).listen(t, "0.0.0.0", p.GuestPort)
		here, err := netns.Get()
		if err != nil {
			t.Fatal(err)
		}
		defer here.Close()
		if answer, err := (space{here}).dial(t, strings.ToLower(p.Protocol), fmt.Sprintf("127.0.0.1:%d", p.HostPort), true); err != nil || answer == "" {
			t.Errorf("%s port %d answers %q, %v", p.Protocol, p.HostPort, answer, err)
		}
	}
}

// locked wants a box's init to be unable to take a read-only volume away or to write to it.
func locked(t *testing.T, rec record.Box) {
	t.Helper()
	for _, v := range rec.Options.Volumes {
		if !v.ReadOnly {
			continue
		}
		for _, do := range [][]string{{"mount", "-o", "remount,bind,rw,nosuid,nodev", "none"}, {"umount"}, {"touch"}} {
			if said, err := asInit(rec, append(do, v.GuestPath)...); err == nil {
				t.Errorf("init may %s %s: %s", do[0], v.GuestPath, said)
			}
		}
	}
}

// asInit runs a program of busybox with the rights that a box's init has.
func asInit(rec record.Box, args ...string) ([]byte, error) {
	return exec.Command("nsenter", append([]string{"-t", fmt.Sprint(rec.PID), "-U", "-m", "-r", "/bin/busybox"}, args...)...).CombinedOutput()
}

// spares returns the slots of the spares of a home, also of those that are being
// made.
func spares(t *testing.T, home string) (slots []string) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(home, "boxes", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(home, "records", filepath.Base(dir)+".json")); err != nil {
			slots = append(slots, filepath.Base(dir))
		}
	}
	return slots
}

func awaitSpares(t *testing.T, home string, n int) (slots []string) {
	t.Helper()
	boxes.Await(t, fmt.Sprint(n, " spares"), func() bool {
		slots = spares(t, home)
		return len(slots) == n
	})
	return slots
}

// remains returns what there is in the kernel and in the home with one of the
// slots as its name.
func remains(t *testing.T, home string, slots []string) (left []string) {
	t.Helper()
	for _, slot := range slots {
		for _, pattern := range []string{"/sys/fs/cgroup/*/sandbox/", "/sys/fs/cgroup/sandbox/", home + "/boxes/", home + "/engine/state/"} {
			found, err := filepath.Glob(pattern + slot)
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, found...)
		}
	}
	return left
}

// A home keeps as many spares as it may, like those boxes that it made last; a
// sweep and a list do not see them, and they go when there may be none.
func TestPool(t *testing.T) {
	t.Parallel()
	home, root := t.TempDir(), rootfs.Busybox(t)
	e := boxes.OpenConfig(t, engine.Config{Home: home, Pool: 2})
	ctx := t.Context()
	create(t, e, home, pooled(home, root))
	awaitSpares(t, home, 1) // for one box was made
	create(t, e, home, pooled(home, root))
	ready := awaitSpares(t, home, 2)
	if swept, err := e.Sweep(ctx, 0); err != nil || len(swept.Boxes) > 0 {
		t.Errorf("a sweep removes %v, %v", swept, err)
	}
	if recs, err := e.List(ctx); err != nil || len(recs) != 2 {
		t.Errorf("the list has %v, %v", recs, err)
	}
	waiting := boxes.OpenConfig(t, engine.Config{Home: home, Pool: each}) // waits for a spare that is being made
	for range 2 {
		rec := create(t, waiting, home, pooled(home, root))
		if !slices.Contains(ready, rec.Spare) {
			t.Errorf("a box has the slot %q, and the spares had %q", rec.Spare, ready)
		}
	}
	if swept, err := e.Sweep(ctx, 0); err != nil || len(swept.Boxes) > 0 {
		t.Errorf("a sweep removes %v, %v", swept, err)
	}
	create(t, e, home, pooled(home, root, func(o *options.Box) { o.MemoryMiB = 32 }))
	awaitSpares(t, home, 2) // one for it, and one for the box before
	recs, err := e.List(ctx)
	if err != nil || len(recs) != 5 {
		t.Errorf("the list has %v, %v", recs, err)
	}
	for _, rec := range recs {
		if out, _ := boxes.Output(t, e, rec.ID, options.Exec{Cmd: []string{"hostname"}}); out != rec.ID+"\n" {
			t.Errorf("box %s calls itself %q", rec.ID, out)
		}
	}
	last := spares(t, home)
	none := boxes.OpenConfig(t, engine.Config{Home: home})
	taken := create(t, none, home, pooled(home, root)).Spare
	awaitSpares(t, home, 0)
	last = slices.DeleteFunc(last, func(slot string) bool { return slot == taken })
	boxes.Await(t, "nothing of spares", func() bool { return len(remains(t, home, last)) == 0 })
}

// Boxes beyond the pool are made from nothing, also many at once.
func TestPoolBurst(t *testing.T) {
	t.Parallel()
	home, root := t.TempDir(), rootfs.Busybox(t)
	e := boxes.OpenConfig(t, engine.Config{Home: home, Pool: 2})
	for range 2 {
		create(t, e, home, pooled(home, root))
	}
	awaitSpares(t, home, 2)
	reqs := make([]core.CreateRequest, 6)
	errs := make(chan error)
	for i := range reqs {
		reqs[i] = pooled(home, root)
		go func() {
			_, err := e.Create(t.Context(), reqs[i])
			errs <- err
		}()
	}
	for range reqs {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	bases := map[int]bool{}
	all, _, err := record.Open(home).List()
	if err != nil || len(all) != 8 {
		t.Errorf("got %d boxes, %v", len(all), err)
	}
	for _, rec := range all {
		bases[rec.UIDBase] = true
		if out, _ := boxes.Output(t, e, rec.ID, options.Exec{Cmd: []string{"hostname"}}); out != rec.ID+"\n" {
			t.Errorf("box %s calls itself %q", rec.ID, out)
		}
		if err := e.Remove(t.Context(), rec.ID, true); err != nil {
			t.Error(err)
		}
	}
	if len(bases) != len(all) {
		t.Errorf("%d boxes have %d ranges of ids", len(all), len(bases))
	}
}

// A box of a spare is stopped and started, and its slot goes with its first life.
func TestSpareStops(t *testing.T) {
	t.Parallel()
	home, root := t.TempDir(), rootfs.Busybox(t)
	e := boxes.OpenConfig(t, engine.Config{Home: home, Pool: each})
	ctx := t.Context()
	rec := create(t, e, home, pooled(home, root, func(o *options.Box) { o.User = "0" }))
	boxes.Output(t, e, rec.ID, options.Exec{Cmd: []string{"sh", "-c", "echo mine > /root/file; echo other > /etc/hosts"}})
	if u, err := e.Usage(ctx, rec.ID); err != nil || u.MemoryBytes == 0 || u.CPU == 0 {
		t.Errorf("it uses %+v, %v", u, err)
	}
	if _, err := e.Stop(ctx, rec.ID, time.Second); err != nil {
		t.Fatal(err)
	}
	if left := remains(t, home, []string{rec.Spare}); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if now, err := e.Start(ctx, rec.ID); err != nil || now.Status != api.Running {
		t.Fatalf("started: %+v, %v", now, err)
	}
	if out, _ := boxes.Output(t, e, rec.ID, options.Exec{Cmd: []string{"sh", "-c", "hostname; cat /root/file /etc/hosts"}}); out != rec.ID+"\nmine\nother\n" {
		t.Errorf("started again it says %q", out)
	}
}

// The shim is killed while it has spares: they go, and the boxes stay, those made of
// spares too.
func TestShimKilledWithSpares(t *testing.T) {
	t.Parallel()
	home, root := t.TempDir(), rootfs.Busybox(t)
	e := boxes.OpenConfig(t, engine.Config{Home: home, Pool: 2})
	ctx := t.Context()
	create(t, e, home, pooled(home, root))
	awaitSpares(t, home, 1)
	claimed := create(t, boxes.OpenConfig(t, engine.Config{Home: home, Pool: each}), home, pooled(home, root))
	create(t, e, home, pooled(home, root))
	lost := awaitSpares(t, home, 2)
	if err := syscall.Kill(boxes.ShimPID(t, home), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := e.Flush(ctx); err != nil { // starts the next shim
		t.Fatal(err)
	}
	boxes.Await(t, "nothing of spares", func() bool { return len(remains(t, home, lost)) == 0 })
	if out, _ := boxes.Output(t, e, claimed.ID, options.Exec{Cmd: []string{"echo", "lives"}}); out != "lives\n" {
		t.Errorf("a box of a spare answers %q", out)
	}
	if _, err := e.Stop(ctx, claimed.ID, time.Second); err != nil {
		t.Error(err)
	}
	if left := remains(t, home, []string{claimed.Spare}); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// The shim is killed at many moments of a create of a spare: of one that only hears
// which box it is in, and of one that gets a root file system with a disk and volumes.
func TestShimKilledInClaim(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*options.Box)
		step   time.Duration // between the moments
	}{
		"told": {func(*options.Box) {}, 500 * time.Microsecond},
		"rooted": {func(o *options.Box) {
			o.DiskSizeGB, o.Volumes = 1, []options.Volume{{HostPath: hostDir(t, 0, "f"), GuestPath: "/data", ReadOnly: true}}
		}, 2 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, root := t.TempDir(), rootfs.Busybox(t)
			e := boxes.OpenConfig(t, engine.Config{Home: home, Pool: each})
			other := create(t, e, home, pooled(home, root, test.change))
			for i := range 40 {
				killInClaim(t, e, home, pooled(home, root, test.change), other.ID, time.Duration(i)*test.step)
			}
			awaitSpares(t, home, 0)
			boxes.Await(t, "no disk but that of the other box", func() bool {
				return len(attachedTo(t, home)) == len(attachedTo(t, record.Dir(home, other.ID)))
			})
		})
	}
}

// killInClaim kills the shim after a time in the create of a box: that has failed and
// left nothing, or has made the box, and another one lives on.
func killInClaim(t *testing.T, e core.Engine, home string, req core.CreateRequest, other string, after time.Duration) {
	t.Helper()
	ctx, pid, done := t.Context(), boxes.ShimPID(t, home), make(chan error)
	go func() {
		_, err := e.Create(ctx, req)
		done <- err
	}()
	time.Sleep(after) // where in the create the kill comes
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		if !fault.Is(err, fault.Engine) || !fault.Is(e.Remove(ctx, req.ID, true), fault.BoxNotFound) {
			t.Errorf("killed after %v: %v, want engine_error and no box, or success", after, err)
		}
		return
	}
	for _, id := range []string{req.ID, other} {
		if out, _ := boxes.Output(t, e, id, options.Exec{Cmd: []string{"hostname"}}); out != id+"\n" {
			t.Fatalf("killed after %v: box %s calls itself %q", after, id, out)
		}
	}
	if err := e.Remove(ctx, req.ID, true); err != nil {
		t.Error(err)
	}
}

// A spare whose layers were removed, and put there again, serves nobody.
func TestSpareOfRemovedImage(t *testing.T) {
	t.Parallel()
	home, root := t.TempDir(), rootfs.Busybox(t)
	e := boxes.OpenConfig(t, engine.Config{Home: home, Pool: 1})
	create(t, e, home, pooled(home, root))
	lost := awaitSpares(t, home, 1)
	if err := os.Rename(root, root+"-gone"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(rootfs.Busybox(t), root); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	rec := create(t, boxes.OpenConfig(t, engine.Config{Home: home, Pool: each}), home, pooled(home, root))
	if slices.Contains(lost, rec.Spare) {
		t.Error("the box has the spare of the earlier image")
	}
	if _, status := boxes.Output(t, e, rec.ID, options.Exec{Cmd: []string{"test", "-e", "/new"}}); status.ExitCode != 0 {
		t.Error("the box has the earlier image")
	}
}

// A spare goes with the layers that it stands on, so that it keeps none of the disk.
func TestSpareGoesWithItsImage(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.OpenConfig(t, engine.Config{Home: home, Pool: 1})
	layer := filepath.Join(home, "layers", "one")
	err := errors.Join(e.Flush(t.Context()), os.MkdirAll(filepath.Dir(layer), 0o700), os.Rename(rootfs.Busybox(t), layer))
	if err != nil {
		t.Fatal(err)
	}
	create(t, e, home, pooled(home, layer))
	awaitSpares(t, home, 1)
	if err := os.Rename(layer, layer+"-gone"); err != nil {
		t.Fatal(err)
	}
	awaitSpares(t, home, 0)
}

// Who has settled is no client any more, even while its connection is still open: the shim
// may notice the end of that after the home has gone.
func TestSettledIsNoClient(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.OpenConfig(t, engine.Config{Home: home, Pool: 1})
	req := pooled(home, rootfs.Busybox(t))
	create(t, e, home, req)
	dir, err := sockets.OpenDir(filepath.Join(home, "engine"))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	conn, err := wire.Dial(dir, wire.ShimSocket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := errors.Join(conn.Answer(nil), e.Remove(t.Context(), req.ID, true), conn.Ask(t.Context(), wire.TypeSettle, nil, nil), e.Close()); err != nil {
		t.Fatal(err)
	}
	before := spares(t, home)
	time.Sleep(300 * time.Millisecond) // nothing tells that nothing is made
	if after := spares(t, home); len(after) > len(before) {
		t.Errorf("a spare was made without a client: %q, then %q", before, after)
	}
}

// TestPoolSettles closes the only client of a home at different moments of the making
// of a spare, and wants none to be in the making, or to be made, from then on: whoever
// made the home may remove it.
func TestPoolSettles(t *testing.T) {
	t.Parallel()
	root := rootfs.Busybox(t)
	for round := range 12 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			e := boxes.OpenConfig(t, engine.Config{Home: home, Pool: 1})
			req := pooled(home, root)
			create(t, e, home, req)
			if err := e.Remove(t.Context(), req.ID, true); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(45+5*round) * time.Millisecond) // the shim makes a spare 50 ms after the last request
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(home, "boxes")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(200 * time.Millisecond) // nothing tells that nothing is made
			if _, err := os.Stat(filepath.Join(home, "boxes")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("boxes were made after the last client had left: %v, %v", spares(t, home), err)
			}
		})
	}
}
