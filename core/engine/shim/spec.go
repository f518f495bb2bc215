package shim

import (
	"fmt"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/specconv"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"sandbox/core/engine/record"
	"sandbox/core/options"
)

// These are what init may use in addition to the limits that the box was given.
const (
	initProcesses = 64       // its threads count as processes
	initMemory    = 16 << 20 // bytes
)

// lockedMemory is how many bytes each user of a box may lock, which is what Linux has
// allowed users since 5.16. Boxes don't inherit it: the shim's own limit goes away when
// libcontainer loads its first filter of devices on cgroup2.
const lockedMemory = 8 << 20

// config returns libcontainer's configuration of a box that is bound to cpus; "" for all.
func config(b record.Box, root, cpus string) (*configs.Config, error) {
	mounts, err := mounts(cpus)
	if err != nil {
		return nil, err
	}
	uids, err := idMappings("uid_map", b.UIDBase)
	if err != nil {
		return nil, err
	}
	gids, err := idMappings("gid_map", b.UIDBase)
	if err != nil {
		return nil, err
	}
	spec := &specs.Spec{
		Version: specs.Version,
		Root:    &specs.Root{Path: root},
		Mounts:  mounts,
		Process: &specs.Process{
			Cwd: "/", NoNewPrivileges: true, Capabilities: initCapabilities(),
		},
		Linux: &specs.Linux{
			Namespaces:    boxNamespaces(),
			UIDMappings:   uids,
			GIDMappings:   gids,
			CgroupsPath:   groupParent + "/" + b.ID,
			Resources:     resources(b.Options, cpus),
			MaskedPaths:   masked,
			ReadonlyPaths: readOnly,
			// Most holes of the kernel are reached through nested user
			// namespaces, so a box can make none.
			Sysctl: map[string]string{"user.max_user_namespaces": "0"},
		},
	}
	c, err := specconv.CreateLibcontainerConfig(&specconv.CreateOpts{CgroupName: b.ID, Spec: spec})
	if err != nil {
		return nil, fmt.Errorf("convert the specification of a box: %w", err)
	}
	c.Devices = nil  // mountDev has made them
	c.Networks = nil // init brings the loopback up
	c.Rlimits = rlimits()
	return c, nil
}

// rlimits returns the limits of a box's processes that are not those of the shim.
func rlimits() []configs.Rlimit {
	locked := uint64(lockedMemory)
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &own) == nil { // which not everyone may exceed
		locked = min(locked, own.Max)
	}
	return []configs.Rlimit{{Type: unix.RLIMIT_MEMLOCK, Soft: locked, Hard: locked}}
}

// hostname returns the host name that the box was given, or its name if that is a
// valid one, or else its id.
func hostname(b record.Box) string {
	switch {
	case b.Options.Hostname != "":
		return b.Options.Hostname
	case options.IsHostname(b.Options.Name):
		return b.Options.Name
	}
	return b.ID
}

func boxNamespaces() []specs.LinuxNamespace {
	var n []specs.LinuxNamespace
	for _, t := range []specs.LinuxNamespaceType{
		specs.UserNamespace, specs.MountNamespace, specs.PIDNamespace, specs.NetworkNamespace,
		specs.IPCNamespace, specs.UTSNamespace, specs.CgroupNamespace,
	} {
		n = append(n, specs.LinuxNamespace{Type: t})
	}
	return n
}

// mounts returns the mounts that have to be made within the box's own
// namespaces; mountDev makes those of /dev. A box that is bound to cpus gets a
// /proc/cpuinfo with only these; one that is not ("") sees all of the host's.
func mounts(cpus string) ([]specs.Mount, error) {
	options := []string{"nosuid", "noexec", "nodev"}
	all := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: options},
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: options},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: append(options[:3:3], "ro")},
	}
	if cpus == "" {
		return all, nil
	}
	info, err := stageCPUInfo(cpus)
	if err != nil {
		return nil, fmt.Errorf("make the box's /proc/cpuinfo: %w", err)
	}
	return append(all, specs.Mount{Destination: "/proc/cpuinfo", Type: "bind", Source: info, Options: append(options[:3:3], "bind", "ro")}), nil
}

// masked and readOnly are the paths in /proc and /sys that tell about the host or
// change it. The box does not see the masked ones, and can't write to the others.
var (
	masked = []string{
		"/proc/acpi", "/proc/asound", "/proc/cmdline", "/proc/config.gz", "/proc/interrupts", "/proc/iomem", "/proc/ioports",
		"/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list",
		"/proc/timer_stats", "/proc/tty/driver",
		"/sys/devices/virtual/powercap", "/sys/firmware", "/sys/kernel/boot_params", "/sys/kernel/vmcoreinfo",
	}
	readOnly = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// resources returns the limits of the whole box; execLimits returns those of its
// commands, which are set on their group. The rule denies all devices, and
// libcontainer adds those that it always allows (null, zero, random, terminals).
func resources(o options.Box, cpus string) *specs.LinuxResources {
	memory, pids := int64(o.MemoryMiB)<<20+initMemory, int64(maxTasks(o)+initProcesses)
	period, quota := uint64(100_000), int64(o.CPUs)*100_000 // microseconds
	return &specs.LinuxResources{
		Memory:  &specs.LinuxMemory{Limit: &memory, Swap: swapLimit(memory)},
		CPU:     &specs.LinuxCPU{Period: &period, Quota: &quota, Cpus: cpus},
		Pids:    &specs.LinuxPids{Limit: &pids},
		Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}},
	}
}

// swapLimit returns the limit of memory and swap together that leaves the box no
// swap. On v1 it returns nil, for no limit, if the kernel does not account for
// swap.
func swapLimit(memory int64) *int64 {
	const v1 = "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes"
	if !cgroups.IsCgroup2UnifiedMode() && unix.Access(v1, unix.F_OK) != nil {
		return nil
	}
	return &memory
}

// initCapabilities returns the capabilities of init within the box's user
// namespace: those that commands have, and those that init needs to look after
// the commands.
func initCapabilities() *specs.LinuxCapabilities {
	c := []string{
		"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL",
		"CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP",
		"CAP_SETUID", "CAP_SYS_ADMIN", "CAP_SYS_CHROOT", "CAP_SYS_RESOURCE", "CAP_SYS_TTY_CONFIG",
	}
	return &specs.LinuxCapabilities{Bounding: c, Effective: c, Permitted: c}
}
