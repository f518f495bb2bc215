package rootless

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// groupsDir is where the host's cgroup hierarchies are mounted.
const groupsDir = "/sys/fs/cgroup"

// needed are the v1 hierarchies that limit a box or hold its processes; others are used
// where they are given too. unusable are those that only root of the host can use.
var (
	needed   = []string{"cpu", "memory", "pids", "freezer"}
	others   = []string{"cpuacct", "cpuset"}
	unusable = []string{"devices", "unified", "systemd"}
)

// Groups are the directories of cgroups that this user may use: one in each v1 hierarchy,
// by the name that it is mounted under, or "" for the one on pure cgroup2.
type Groups map[string]string

// Delegated returns the directories of cgroups that root has given to the user who calls.
// Errors: Unsupported, which says what to run so that the limits of boxes can be enforced.
func Delegated() (Groups, error) {
	var st unix.Statfs_t
	if unix.Statfs(groupsDir, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC {
		return delegatedV2()
	}
	return delegatedV1()
}

func delegatedV1() (Groups, error) {
	own := ownGroups()
	found := Groups{}
	entries, _ := os.ReadDir(groupsDir) // what can't be read has nothing that is needed
	for _, e := range entries {
		name := e.Name()
		if slices.Contains(unusable, name) {
			continue
		}
		if dir := given(filepath.Join(groupsDir, name), own[name], "tasks"); dir != "" && (name != "cpuset" || hasCPUs(dir)) {
			found[name] = dir
		}
	}
	for _, name := range needed {
		if found[name] == "" {
			return nil, fault.New(fault.Unsupported, "no directory of the %s cgroup was given to this user, so the limits of boxes could not be enforced: %s", name, DelegateLine())
		}
	}
	return found, nil
}

// DelegateLine is the command line that gives this user cgroups.
func DelegateLine() string {
	uid := os.Getuid()
	return fmt.Sprintf("sudo sh -c 'cd %s && for c in %s; do mkdir -p $c/sandbox-%d && chown -R %d $c/sandbox-%d; done'",
		groupsDir, strings.Join(slices.Concat(needed, others[:1]), " "), uid, uid, uid)
}

// hasCPUs tells whether a cpuset is ready for groups below it.
func hasCPUs(dir string) bool {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || len(bytes.TrimSpace(text)) == 0 {
			return false
		}
	}
	return true
}
