package leak

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// TestFinds leaves one thing of each kind behind, and then takes it away.
func TestFinds(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T) (word string, tidy func()){
		"goroutine":  goroutine,
		"descriptor": descriptor,
		"child":      child,
		"mount":      mount,
		"cgroup":     cgroup,
	} {
		t.Run(name, func(t *testing.T) {
			before := look()
			word, tidy := leave(t)
			left := before.wait(0)
			if !slices.ContainsFunc(left, func(line string) bool { return strings.Contains(line, word) }) {
				t.Errorf("%q does not name %q", left, word)
			}
			tidy()
			if left := before.wait(timeout); len(left) > 0 {
				t.Errorf("still names %q", left)
			}
		})
	}
}

func TestWaits(t *testing.T) {
	before := look()
	cmd := exec.Command("sleep", "0.2")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go cmd.Wait()
	if left := before.wait(timeout); len(left) > 0 {
		t.Errorf("did not wait for the child: %q", left)
	}
}

// TestKnown wants a process that was there before not to be named once its state is another.
func TestKnown(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	before := look()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var info unix.Siginfo // it is a zombie from then on
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if left := naming(before.wait(0), fmt.Sprintf("process %d ", cmd.Process.Pid)); len(left) > 0 {
		t.Errorf("names %q", left)
	}
	_ = cmd.Wait() // it was killed
}

// TestKnownGroup wants a cgroup that was there before not to be named once its processes
// are gone: it may be a box's of another suite, whose shim is killed.
func TestKnownGroup(t *testing.T) {
	dir, tidy := cgroup(t)
	defer tidy()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() { _, _ = cmd.Process.Kill(), cmd.Wait() }
	defer end()
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	before := look()
	end()
	if left := naming(before.wait(0), dir); len(left) > 0 {
		t.Errorf("names %q", left)
	}
}

// naming returns the lines that name a thing. The others are of suites that run at the same
// time, whose cgroups look like those of this one until a process is in them.
func naming(lines []string, thing string) []string {
	return slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, thing) })
}

// TestReused wants a process not to be taken for one that had its number before.
func TestReused(t *testing.T) {
	before := look()
	word, tidy := child(t)
	defer tidy()
	before.things[word+"since 1"] = thing{}
	if left := before.wait(0); !slices.ContainsFunc(left, func(line string) bool { return strings.HasPrefix(line, word) }) {
		t.Errorf("%q does not name %q", left, word)
	}
}

// TestAdded wants what was there before not to be named, also if it looks like this
// suite's only by now: an init does whose shim was killed meanwhile.
func TestAdded(t *testing.T) {
	t.Parallel()
	init, ours := thing{name: "init"}, thing{"init", true}
	for name, tt := range map[string]struct {
		before, now map[string]thing
		want        bool
	}{
		"its shim was killed":   {map[string]thing{"1": init}, map[string]thing{"1": ours}, false},
		"ours, as before":       {map[string]thing{"1": ours}, map[string]thing{"1": ours}, false},
		"new, of another suite": {nil, map[string]thing{"1": init}, false},
		"new":                   {map[string]thing{"1": init}, map[string]thing{"2": ours}, true},
	} {
		if left := (seen{things: tt.before}).added(tt.now); (len(left) > 0) != tt.want {
			t.Errorf("%s: names %v", name, left)
		}
	}
}

func TestDirs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if left := dirs(dir); len(left) != 0 {
		t.Errorf("empty directory: %q", left)
	}
	if err := os.Mkdir(filepath.Join(dir, "home"), 0o700); err != nil {
		t.Fatal(err)
	}
	if left := dirs(dir); len(left) != 1 || !strings.HasSuffix(left[0], "home") {
		t.Errorf("got %q", left)
	}
}

func TestMentions(t *testing.T) {
	t.Parallel()
	const dir = "/tmp/leak-1/"
	for name, test := range map[string]struct {
		file, content string
		want          bool
	}{
		"argument":        {"cmdline", "sandbox-shim\x00serve\x00/tmp/leak-1/home\x00", true},
		"variable":        {"environ", "TMPDIR=/tmp/leak-1/x\x00", true},
		"open file":       {"fd/3", "/tmp/leak-1/home/lock", true},
		"another's home":  {"cmdline", "sandbox-shim\x00serve\x00/tmp/leak-2/home\x00", false},
		"another's file":  {"fd/3", "/tmp/leak-2/home/lock", false},
		"mount, a copy's": {"mountinfo", "36 35 8:1 / /tmp/leak-1/disk rw - ext4 /dev/loop0 rw\n", false},
	} {
		proc := t.TempDir()
		path := filepath.Join(proc, test.file)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if strings.HasPrefix(test.file, "fd/") {
			err = errors.Join(err, os.Symlink(test.content, path))
		} else {
			err = errors.Join(err, os.WriteFile(path, []byte(test.content), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := mentions(proc, dir); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// TestMine tells whose an init is whose own shim has died: the shim's of its home.
func TestMine(t *testing.T) {
	t.Parallel()
	under := func(parent int) procfs.ProcStat { return procfs.ProcStat{PPID: parent} }
	shim := func(home string, ours bool) process {
		p := process{shim: true, ProcStat: under(1), inTempDirs: ours, command: "sandbox-shim serve " + home}
		p.mark = markOf(p, "")
		return p
	}
	of := shim("/tmp/leak-1/home", true).mark
	init := process{init: true, ProcStat: under(1)}
	init.mark = markOf(init, "HOME=/root\x00SANDBOX_HOME_MARK="+of+"\x00")
	child := process{ProcStat: under(2)}
	files := process{init: true, ProcStat: under(2)} // an init's child that works on files is the init's program too
	for name, tt := range map[string]struct {
		all  map[int]process
		want bool
	}{
		"its home has no shim":   {map[int]process{1: {}, 2: init, 3: child}, true},
		"our shim took it over":  {map[int]process{1: {}, 2: init, 3: child, 4: shim("/tmp/leak-1/home", true)}, true},
		"another shim took it":   {map[int]process{1: {}, 2: init, 3: child, 4: shim("/tmp/leak-1/home", false)}, false},
		"a shim of another home": {map[int]process{1: {}, 2: init, 3: child, 4: shim("/tmp/leak-2/home", false)}, true},
		"its shim still has it":  {map[int]process{1: {}, 2: {init: true, ProcStat: under(4), mark: of}, 3: child, 4: shim("/tmp/leak-1/home", false)}, false},
		"our shim still has it":  {map[int]process{1: {}, 2: {init: true, ProcStat: under(4), mark: of}, 3: child, 4: shim("/tmp/leak-1/home", true)}, true},
	} {
		tt.all[5] = files
		for _, pid := range []int{2, 3, 5} {
			if got := mine(tt.all, pid); got != tt.want {
				t.Errorf("%s: process %d: %t, want %t", name, pid, got, tt.want)
			}
		}
	}
}

func goroutine(*testing.T) (string, func()) {
	stop := make(chan struct{})
	go func() { <-stop }()
	return "leak.goroutine", func() { close(stop) }
}

func descriptor(t *testing.T) (string, func()) {
	f, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	return "/dev/null", func() { _ = f.Close() }
}

func child(t *testing.T) (string, func()) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("process %d ", cmd.Process.Pid), func() { _, _ = cmd.Process.Kill(), cmd.Wait() }
}

func mount(t *testing.T) (string, func()) {
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal("needs root to mount: ", err)
	}
	return dir, func() { _ = unix.Unmount(dir, 0) }
}

func cgroup(t *testing.T) (string, func()) {
	parents, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	parents = append(parents, "/sys/fs/cgroup/cgroup.procs")
	group := filepath.Join(filepath.Dir(parents[0]), "sandbox", "leak-test")
	if err := os.MkdirAll(group, 0o755); err != nil {
		t.Fatal("needs root to make a cgroup: ", err)
	}
	return group, func() {
		_ = os.Remove(group)
		_ = os.Remove(filepath.Dir(group)) // stays if boxes are below it
	}
}

func TestMain(m *testing.M) { Main(m) }
