package attack_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/options"
	"sandbox/test/boxes"
)

// No signal from inside ends init, neither one to the process nor one to a
// thread of it, nor one to all processes.
func TestSignalsFromInside(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	out := b.Sh(t, `for s in $(seq 1 64); do kill -$s 1 || echo "$s refused"; done
		for t in `+strings.Join(threads(t, b), " ")+`; do for s in $(seq 1 64); do kill -$s $t; done; done; echo sent`)
	if !strings.HasSuffix(out, "sent\n") { // before it: threads that have gone meanwhile
		t.Errorf("got %q", out)
	}
	b.Lives(t)
	out, _ = b.Output(t, options.Exec{Cmd: []string{"grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"}})
	if strings.Trim(out, "SigInBlk:\t\n0") != "" {
		t.Errorf("a command begins with signals ignored or blocked: %s", out)
	}
	for _, sig := range []int{1, 9, 15, 19} {
		b.Sh(t, fmt.Sprintf("sleep 1000 & kill -%d -1", sig))
		b.Lives(t)
	}
}

// threads returns the numbers in the box of its init's threads.
func threads(t *testing.T, b *boxes.Box) (all []string) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", b.PID))
	if err != nil || len(files) < 3 {
		t.Fatalf("init has the threads %q, %v", files, err)
	}
	for _, file := range files {
		status, _ := os.ReadFile(file) // one may have ended
		for line := range strings.Lines(string(status)) {
			if rest, ok := strings.CutPrefix(line, "NSpid:"); ok {
				ids := strings.Fields(rest)
				all = append(all, ids[len(ids)-1])
			}
		}
	}
	return all
}

// What /proc tells of init is what it tells of everyone; the box's root sees
// nothing of its memory, descriptors, environment and namespaces, and writes to
// none of its files. Nor to any other of /proc and /sys.
func TestProcIsClosed(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	for _, name := range []string{
		"mem", "environ", "maps", "smaps", "pagemap", "auxv", "stack", "syscall", "personality", "io", "task/1/mem", "task/1/environ",
	} {
		if out := b.Sh(t, "head -c 1 /proc/1/"+name+" 2>/dev/null | wc -c"); out != "0\n" {
			t.Errorf("/proc/1/%s can be read: %q", name, out)
		}
	}
	for _, name := range []string{"root", "cwd", "exe"} {
		if out := b.Sh(t, "readlink /proc/1/"+name+"; cat /proc/1/"+name+"/etc/hostname"); !strings.Contains(out, "Permission denied") || strings.Contains(out, "busybox\n") {
			t.Errorf("/proc/1/%s can be followed: %q", name, out)
		}
	}
	for _, name := range []string{"fd", "fdinfo", "map_files", "ns", "task"} {
		if out := b.Sh(t, "ls /proc/1/"+name+" 2>&1"); out != "" {
			t.Errorf("/proc/1/%s is not empty: %q", name, out)
		}
	}
	for _, name := range []string{"cmdline", "config.gz", "iomem", "ioports", "keys", "timer_list", "../sys/kernel/vmcoreinfo"} {
		if out := b.Sh(t, "head -c 1 /proc/"+name+" 2>/dev/null | wc -c"); out != "0\n" {
			t.Errorf("/proc/%s can be read: %q", name, out)
		}
	}
	if out := b.Sh(t, "ls /sys/kernel/boot_params /sys/firmware /proc/tty/driver 2>/dev/null"); strings.Contains(out, "version") || strings.Contains(out, "serial") {
		t.Errorf("the host's boot and lines are told: %q", out)
	}
	// Not one command is started for each of the 15,000 files: what the kernel keeps of commands
	// that have ended counts against the box's memory, and is freed late on a busy host.
	script := `writable() { while read -r f; do { echo 1 >>"$f"; } 2>/dev/null && echo "$f"; done; }
		touch /tmp/own
		find /proc/1 /proc/sys /proc/irq /proc/bus /proc/fs /sys /tmp/own -type f 2>/dev/null | writable
		find /proc /tmp/own -maxdepth 1 -type f | writable`
	if out := b.Sh(t, script); out != "/tmp/own\n/tmp/own\n" { // the box's own file is found writable after all others
		t.Errorf("can be written:\n%.3000s", out)
	}
	b.Lives(t)
}

// A box's devices are files of its own: what it does to their times and modes
// stays in it.
func TestOwnDevices(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		var host unix.Stat_t
		if err := unix.Stat("/dev/"+name, &host); err != nil {
			t.Fatal(err)
		}
		out := b.Sh(t, "touch /dev/"+name+" && chmod 600 /dev/"+name+" && chmod 666 /dev/"+name+" && stat -c '%d %i %t:%T' /dev/"+name)
		var dev, ino uint64
		var rdev string
		if _, err := fmt.Sscanf(out, "%d %d %s", &dev, &ino, &rdev); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		if want := fmt.Sprintf("%x:%x", unix.Major(host.Rdev), unix.Minor(host.Rdev)); rdev != want || dev == host.Dev {
			t.Errorf("/dev/%s is %q, want %s on another file system than %d", name, out, want, host.Dev)
		}
	}
	if out := b.Sh(t, "echo x >/dev/null && head -c 3 /dev/zero | wc -c && head -c 3 /dev/urandom | wc -c"); out != "3\n3\n" {
		t.Errorf("the devices answer %q", out)
	}
}

// hostGone is what ls says of a file of /sys that goes between its list and its look.
var hostGone = regexp.MustCompile(`(?m)^ls: (can't open ')?/sys/.*: No such file or directory\n`)

// What can't be read of init is out of sight, so that a look at the whole tree
// succeeds; the rest of init is there.
func TestListAll(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	out, want := b.Sh(t, "ls -R / 2>&1 >/dev/null; echo $?"), "0\n"
	// What the kernel says of the host's disks goes while ls looks, where other tests unmount theirs.
	if kept := hostGone.ReplaceAllString(out, ""); kept != out {
		out, want = kept, "1\n"
	}
	if out != want {
		t.Errorf("ls -R / ended with\n%s", out)
	}
	if out := b.Sh(t, "ps -o pid,comm | grep -c '^ *1 '; kill -0 1 && cat /proc/1/cgroup | wc -l"); !strings.HasPrefix(out, "1\n") || strings.HasSuffix(out, "\n0\n") {
		t.Errorf("init is not there: %q", out)
	}
}

// intruder puts the program that makes forbidden system calls into a box's tree.
// It is built here, or where SANDBOX_TEST_INTRUDER says that it was (test/vm).
func intruder(t *testing.T, root string) {
	t.Helper()
	program := filepath.Join(root, "bin/intruder")
	get := exec.Command("go", "build", "-o", program, "./testdata/intruder")
	get.Env = append(os.Environ(), "CGO_ENABLED=0")
	if built := os.Getenv("SANDBOX_TEST_INTRUDER"); built != "" {
		get = exec.Command("cp", built, program)
	}
	if out, err := get.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// The system calls that lead out of a box, or to its init, are refused.
func TestForbiddenCalls(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	intruder(t, b.Root)
	out, status := b.Output(t, options.Exec{Cmd: []string{"intruder"}})
	if status.Status != api.ExecSucceeded {
		t.Errorf("ended %+v", status)
	}
	refusal := []string{"EPERM", "EACCES", "ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ENOSPC", "ENOMEM"}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines {
		if _, errno, _ := strings.Cut(line, ": "); !slices.Contains(refusal, errno) {
			t.Errorf("not refused: %s", line)
		}
	}
	if len(lines) < 30 {
		t.Errorf("only %d calls were made: %q", len(lines), out)
	}
	b.Lives(t)
}
