package shim

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
)

// group is the shim's own cgroup: it must not end with the service of the
// program that happened to start it, nor be charged to that one's limits.
type group struct{ path string }

func ownGroup(home string) group {
	return group{fmt.Sprintf("%s/shim-%x", groupParent, hash(home))}
}

func hash(home string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(home))
	return h.Sum64()
}

// homeMark is a variable in the environment of each init of a home. It tells
// whose an init is that no record names.
func homeMark(home string) string { return fmt.Sprintf("SANDBOX_HOME_MARK=%x", hash(home)) }

// enter moves this process into its group, and ends what an earlier shim of
// the home, which died, left there: half-made boxes, unpacking children.
func (g group) enter() error {
	m, err := manager.New(&cgroups.Cgroup{Path: g.path, Resources: &cgroups.Resources{}})
	if err != nil {
		return err
	}
	for _, path := range g.dirs(hostGroups) { // takeGroups comes later
		killGroup(path)
	}
	sweepShimGroups(hostGroups)
	return m.Apply(os.Getpid())
}

// minGroupAge is the age at which a shim is in its group for certain.
const minGroupAge = time.Minute

// sweepShimGroups removes the groups of shims that were killed and whose homes
// nobody has used since. One that has processes can't be removed.
func sweepShimGroups(groupRoot string) {
	for _, root := range hierarchies(groupRoot) {
		groups, _ := filepath.Glob(filepath.Join(root, groupParent, "shim-*")) // only a bad pattern fails
		for _, path := range groups {
			if st, err := os.Stat(path); err == nil && time.Since(st.ModTime()) > minGroupAge {
				_ = os.Remove(path)
			}
		}
	}
}

// leave removes the group, and the boxes' common directory with the last home.
func (g group) leave() {
	for _, path := range g.dirs(groupRoot()) {
		parent := filepath.Dir(path)
		_ = cgroups.WriteCgroupProc(filepath.Dir(parent), os.Getpid())
		_ = cgroups.RemovePath(path)
	}
	for _, root := range hierarchies(groupRoot()) {
		_ = os.Remove(filepath.Join(root, groupParent)) // fails while others are in it
	}
}

// directories returns those of the group's directories that exist.
func (g group) dirs(groupRoot string) []string {
	var found []string
	for _, root := range hierarchies(groupRoot) {
		if path := filepath.Join(root, g.path); exists(path) {
			found = append(found, path)
		}
	}
	return found
}

// hierarchies returns the directories at which the host's are mounted.
func hierarchies(groupRoot string) []string {
	if cgroups.IsCgroup2UnifiedMode() {
		return []string{groupRoot}
	}
	roots, _ := filepath.Glob(groupRoot + "/*") // only a bad pattern fails
	return roots
}
