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

// group is the shim's own cgroup. The shim needs one because it must not end with
// the service of the program that happened to start it, nor count towards the
// limits of that service.
type group struct{ path string }

func ownGroup(home string) group {
	return group{fmt.Sprintf("%s/shim-%x", groupParent, hash(home))}
}

func hash(home string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(home))
	return h.Sum64()
}

// homeMark returns the variable in the environment of each init of a home. It
// tells to which home an init belongs that no record names.
func homeMark(home string) string { return fmt.Sprintf("SANDBOX_HOME_MARK=%x", hash(home)) }

// enter moves this process into its group. First it kills the processes that an
// earlier shim of the home left there when it died: those of half-made boxes, and
// children that unpack layers.
func (g group) enter() error {
	if asUser && !unifiedMode() {
		return g.enterGiven()
	}
	m, err := manager.New(&cgroups.Cgroup{Path: g.path, Resources: &cgroups.Resources{}})
	if err != nil {
		return err
	}
	for _, path := range g.dirs(hostGroups) { // takeGroups is called later
		killGroup(path)
	}
	sweepShimGroups(hostGroups)
	return m.Apply(os.Getpid())
}

// enterGiven is enter on the v1 hierarchies of which the user was given directories.
func (g group) enterGiven() error {
	for _, root := range hierarchies(groupRoot()) {
		path := filepath.Join(root, g.path)
		killGroup(path)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if filepath.Base(root) == "cpuset" {
			settings, err := cpusets(filepath.Dir(path), "")
			if err != nil {
				return err
			}
			for _, s := range settings {
				if err := write(path, s.file, s.value); err != nil {
					return err
				}
			}
		}
		if err := cgroups.WriteCgroupProc(path, os.Getpid()); err != nil {
			return err
		}
	}
	sweepShimGroups(groupRoot())
	return nil
}

// minGroupAge is the age of a group at which the shim or box that it was made for
// is certain to be in it.
const minGroupAge = time.Minute

// sweepShimGroups removes the groups of shims that were killed and whose homes
// have not been used since. Groups of running shims stay, because the kernel
// does not remove a group that has processes.
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

// leave moves this process out of its group and removes the group. The shim of the
// last home also removes the directory that the groups of all homes are in.
func (g group) leave() {
	for _, path := range g.dirs(groupRoot()) {
		parent := filepath.Dir(path)
		_ = cgroups.WriteCgroupProc(filepath.Dir(parent), os.Getpid())
		_ = cgroups.RemovePath(path)
	}
	for _, root := range hierarchies(groupRoot()) {
		_ = os.Remove(filepath.Join(root, groupParent)) // fails while other groups are in it
	}
}

// dirs returns those of the group's directories that exist.
func (g group) dirs(groupRoot string) []string {
	var found []string
	for _, root := range hierarchies(groupRoot) {
		if path := filepath.Join(root, g.path); exists(path) {
			found = append(found, path)
		}
	}
	return found
}

// hierarchies returns the directories at which the host's cgroup hierarchies are
// mounted.
func hierarchies(groupRoot string) []string {
	if unifiedMode() {
		return []string{groupRoot}
	}
	roots, _ := filepath.Glob(groupRoot + "/*") // only a bad pattern fails
	return roots
}
