package shim

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
)

// group is the helper's own cgroup: it must not end with the service of the
// program that happened to start it, nor be charged to that one's limits.
type group struct{ path string }

func ownGroup(home string) group {
	h := fnv.New64a()
	_, _ = h.Write([]byte(home))
	return group{fmt.Sprintf("%s/shim-%x", groupParent, h.Sum64())}
}

func (g group) enter() error {
	m, err := manager.New(&cgroups.Cgroup{Path: g.path, Resources: &cgroups.Resources{}})
	if err != nil {
		return err
	}
	return m.Apply(os.Getpid())
}

// leave removes the group, and the boxes' common folder with the last home.
func (g group) leave() {
	for _, root := range hierarchies() {
		if own := existing(filepath.Join(root, g.path)); own != "" {
			_ = cgroups.WriteCgroupProc(root, os.Getpid())
			_ = cgroups.RemovePath(own)
		}
		_ = os.Remove(filepath.Join(root, groupParent)) // fails while others are in it
	}
}
