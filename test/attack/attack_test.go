package attack_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
		for t in /proc/1/task/*; do for s in $(seq 1 64); do kill -$s ${t##*/}; done; done; echo sent`)
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
	for _, name := range []string{"root", "cwd", "exe", "ns/user", "ns/mnt", "ns/net", "ns/pid", "task/1/root"} {
		if out := b.Sh(t, "readlink /proc/1/"+name+"; cat /proc/1/"+name+"/etc/hostname"); !strings.Contains(out, "Permission denied") || strings.Contains(out, "busybox\n") {
			t.Errorf("/proc/1/%s can be followed: %q", name, out)
		}
	}
	for _, name := range []string{"fd", "fdinfo", "map_files", "task/1/fd"} {
		if out := b.Sh(t, "ls /proc/1/"+name+" 2>/dev/null"); out != "" {
			t.Errorf("/proc/1/%s can be listed: %q", name, out)
		}
	}
	script := `writable() { while read -r f; do ( echo 1 >>"$f" ) 2>/dev/null && echo "$f"; done; }
		find /proc/1 /proc/sys /proc/irq /proc/bus /proc/fs /sys -type f 2>/dev/null | writable
		find /proc -maxdepth 1 -type f | writable`
	if out := b.Sh(t, script); out != "" {
		t.Errorf("can be written:\n%.3000s", out)
	}
	b.Lives(t)
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
	refusal := []string{"EPERM", "EACCES", "ENOSYS", "EAFNOSUPPORT", "ENOSPC"}
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
