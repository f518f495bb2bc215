package shim

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/opencontainers/cgroups"
)

// setting is a value for a file of a cgroup v1 group.
type setting struct{ file, value string }

// limitGroup limits a box's new group in the v1 hierarchy of a controller.
// libcontainer can do that too, but reads each value back and takes nine system
// calls to write one: five hundred for each box.
func limitGroup(controller, path string, r *cgroups.Resources) error {
	settings, err := settingsOf(controller, path, r)
	if err != nil {
		return err
	}
	for _, s := range settings {
		if err := write(path, s.file, s.value); err != nil {
			return err
		}
	}
	return nil
}

// settingsOf returns the settings of a box's group, in the order in which they are
// to be written.
func settingsOf(controller, path string, r *cgroups.Resources) ([]setting, error) {
	switch controller {
	case "cpu":
		return []setting{
			{"cpu.cfs_period_us", strconv.FormatUint(r.CpuPeriod, 10)},
			{"cpu.cfs_quota_us", strconv.FormatInt(r.CpuQuota, 10)},
		}, nil
	case "cpuset":
		return cpusets(filepath.Dir(path), r.CpusetCpus)
	case "devices":
		return deviceRules(r), nil
	case "memory":
		all := []setting{{"memory.limit_in_bytes", strconv.FormatInt(r.Memory, 10)}}
		if r.MemorySwap != 0 { // see swapLimit
			all = append(all, setting{"memory.memsw.limit_in_bytes", strconv.FormatInt(r.MemorySwap, 10)})
		}
		return all, nil
	case "pids":
		return []setting{{"pids.max", strconv.FormatInt(*r.PidsLimit, 10)}}, nil
	}
	return nil, nil
}

// deviceRules returns the rules for devices, the first of which denies all.
func deviceRules(r *cgroups.Resources) (all []setting) {
	for _, rule := range r.Devices {
		file := "devices.deny"
		if rule.Allow {
			file = "devices.allow"
		}
		all = append(all, setting{file, rule.CgroupString()})
	}
	return all
}

// cpusets returns the settings of a group below parent, which takes no process
// before it has them. cpus are "" for all.
func cpusets(parent, cpus string) ([]setting, error) {
	all, err := inherit(parent, "cpuset.cpus")
	if err != nil {
		return nil, err
	}
	mems, err := inherit(parent, "cpuset.mems")
	return []setting{{"cpuset.cpus", cmp.Or(cpus, all)}, {"cpuset.mems", mems}}, err
}

// inherit returns the value of a file of a group. If the group has none, as it is
// new, it gets its parent's.
func inherit(dir, file string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	value := strings.TrimSpace(string(text))
	if err != nil || value != "" {
		return value, err
	}
	if value, err = inherit(filepath.Dir(dir), file); err != nil {
		return "", err
	}
	return value, write(dir, file, value)
}
