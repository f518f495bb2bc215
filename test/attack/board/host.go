package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// watched are settings of the host that attacks try to change, and that nobody else does:
// the host forwards packets for as long as there are boxes with a network.
var watched = []string{
	"kernel/core_pattern", "kernel/modprobe", "kernel/hostname", "kernel/domainname", "kernel/sysrq", "kernel/panic", "kernel/pid_max",
	"kernel/dmesg_restrict", "kernel/kptr_restrict", "kernel/perf_event_paranoid", "kernel/unprivileged_bpf_disabled", "kernel/randomize_va_space",
	"kernel/tainted", "vm/overcommit_memory", "vm/panic_on_oom", "vm/mmap_min_addr", "fs/suid_dumpable", "fs/protected_symlinks",
	"net/core/somaxconn", "net/core/bpf_jit_enable",
}

// host is what the board watches of this host: settings, a file, a tree and a process.
type host struct {
	mu       sync.Mutex
	before   map[string]string
	ahead    time.Duration // see clockAhead
	sentinel *exec.Cmd
	file     string
	tree     string // a directory outside of all that boxes were given
}

// sentinelText is what the file has.
const sentinelText = "nobody writes here"

// watchHost begins to watch. The caller closes it.
func (b *bench) watchHost() (*host, error) {
	h := &host{file: filepath.Join(b.dir, "sentinel"), tree: filepath.Join(b.dir, "outside"), sentinel: b.command(context.Background(), "sleep", "infinity")}
	if err := os.MkdirAll(filepath.Join(h.tree, "directory"), 0o700); err != nil {
		return nil, err
	}
	for _, name := range []string{h.file, filepath.Join(h.tree, "file"), filepath.Join(h.tree, "directory", "file")} {
		if err := os.WriteFile(name, []byte(sentinelText), 0o600); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(b.own(h.file), b.own(h.tree)); err != nil {
		return nil, err
	}
	if err := h.sentinel.Start(); err != nil {
		return nil, err
	}
	h.before, h.ahead = h.look(), clockAhead()
	return h, nil
}

// look returns what there is to see now.
func (h *host) look() map[string]string {
	seen := map[string]string{}
	for _, name := range watched {
		text, _ := os.ReadFile("/proc/sys/" + name) // one that this kernel lacks is ""
		seen["/proc/sys/"+name] = string(text)
	}
	text, _ := os.ReadFile(h.file)
	seen["a file"] = string(text)
	seen["a tree"] = treeOf(h.tree)
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(h.sentinel.Process.Pid) + "/stat")
	_, state, _ := strings.Cut(string(stat), ") ")
	seen["a process"] = "runs"
	if state == "" || strings.Contains("TtZX", state[:1]) {
		seen["a process"] = "does not run"
	}
	return seen
}

// clockAhead returns how far the clock is ahead of the time since the host has started,
// which stays as it is until the clock is set.
func clockAhead() time.Duration {
	var now, since unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME, &now) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &since) != nil {
		return 0
	}
	return time.Duration(now.Nano() - since.Nano())
}

// wasSet reports whether the clock was set between two looks at how far it is ahead. The
// host itself corrects it by less, and some time passes between reading the two clocks.
func wasSet(before, now time.Duration) bool { return (now - before).Abs() > 30*time.Second }

// changes returns what is other than before, and takes it for what is to be from now on.
func (h *host) changes() (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.look()
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if now[name] != h.before[name] {
			all = append(all, fmt.Sprintf("%s: %.40q, before %.40q", name, now[name], h.before[name]))
		}
	}
	ahead := clockAhead()
	if wasSet(h.ahead, ahead) {
		all = append(all, fmt.Sprintf("the clock: %v ahead of the start, before %v", ahead, h.ahead))
	}
	h.before, h.ahead = now, ahead
	return all
}

// treeOf returns a text that says all of a directory but when it was read.
func treeOf(dir string) string {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err = errors.Join(err, unix.Lstat(path, &st)); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(sum, path, st.Mode, st.Uid, st.Gid, st.Nlink, st.Size, st.Mtim, st.Ctim)
		if d.Type().IsRegular() {
			text, _ := os.ReadFile(path)
			_, _ = sum.Write(text)
		}
		return nil
	})
	return fmt.Sprintf("%x %v", sum.Sum(nil), err)
}

func (h *host) close() { _, _ = h.sentinel.Process.Kill(), h.sentinel.Wait() }
