package doctor

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"

	"sandbox/core/engine"
)

// controllers are the cgroup controllers that enforce the limits of a box.
var controllers = []string{"cpu", "memory", "pids"}

// hierarchy describes how the host's cgroups are mounted.
type hierarchy struct {
	v1      []string        // controllers that are mounted as version 1
	v2      []string        // controllers of the version 2 tree
	unified *mountinfo.Info // the version 2 tree, or nil
}

func readHierarchy() (hierarchy, error) {
	var h hierarchy
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return h, fmt.Errorf("read the mounts: %w", err)
	}
	for _, m := range mounts {
		if m.FSType == "cgroup" {
			h.v1 = append(h.v1, strings.Split(m.VFSOptions, ",")...)
		} else if h.unified == nil {
			h.unified = m
		}
	}
	if h.unified == nil {
		return h, nil
	}
	text, err := os.ReadFile(filepath.Join(h.unified.Mountpoint, "cgroup.controllers"))
	if err != nil {
		return h, fmt.Errorf("read the cgroup controllers: %w", err)
	}
	h.v2 = strings.Fields(string(text))
	return h, nil
}

// layout returns the name of the way in which the cgroups are mounted.
func (h hierarchy) layout() string {
	switch {
	case h.unified == nil && h.v1 == nil:
		return "none"
	case h.unified == nil:
		return "v1"
	case h.v1 == nil:
		return "v2"
	}
	return "hybrid"
}

func cgroups(context.Context, engine.Config) (string, *lack) {
	h, err := readHierarchy()
	if err != nil {
		return "", &lack{err.Error(), "mount -t cgroup2 cgroup2 /sys/fs/cgroup"}
	}
	if h.layout() == "none" {
		return "", &lack{"no cgroups are mounted", "mount -t cgroup2 cgroup2 /sys/fs/cgroup"}
	}
	have, absent := h.split()
	found := h.layout() + " with " + cmp.Or(strings.Join(have, ", "), "no controller that boxes can use")
	if absent == nil {
		return found, nil
	}
	return found, &lack{"no controller for " + strings.Join(absent, ", "), h.enable(absent)}
}

// split divides the controllers that boxes need into those that the host has
// and those that are absent.
func (h hierarchy) split() (have, absent []string) {
	need := controllers
	if h.unified == nil {
		need = append(slices.Clone(need), "freezer") // version 2 freezes without a controller
	}
	for _, name := range need {
		if slices.Contains(h.v1, name) || slices.Contains(h.v2, name) {
			have = append(have, name)
		} else {
			absent = append(absent, name)
		}
	}
	return have, absent
}

// enable returns the command line, or the advice, that makes the absent
// controllers available.
func (h hierarchy) enable(absent []string) string {
	if h.layout() == "v1" || h.layout() == "hybrid" {
		c := absent[0]
		return fmt.Sprintf("mkdir -p /sys/fs/cgroup/%s && mount -t cgroup -o %s cgroup /sys/fs/cgroup/%s", c, c, c)
	}
	return "add 'cgroup_enable=" + strings.Join(absent, " cgroup_enable=") + "' to the kernel's command line"
}

// favorDynMods reports the mount option favordynmods and never sets it. Only a
// reboot turns it off again, and it makes forks and exits a little slower, so
// the owner of the host has to decide.
func favorDynMods(context.Context, engine.Config) (string, *lack) {
	h, err := readHierarchy()
	switch {
	case err != nil || h.unified == nil:
		return "no cgroup2 tree", nil
	case slices.Contains(strings.Split(h.unified.VFSOptions, ","), "favordynmods"):
		return "on", nil
	}
	return "off", &lack{
		"without it some creates are slow, since they wait for the kernel; with it forks and exits are slightly slower, and only a reboot turns it off",
		"mount -o remount,favordynmods " + h.unified.Mountpoint,
	}
}
