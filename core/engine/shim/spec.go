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

// What init may use beside what the box was given.
const (
	initProcesses = 64       // its threads count as processes
	initMemory    = 16 << 20 // bytes
)

// config returns libcontainer's configuration of a box.
func config(b record.Box, root string) (*configs.Config, error) {
	cpus := pickCPUs(b.Options.CPUs)
	mounts, err := mounts(cpus)
	if err != nil {
		return nil, err
	}
	spec := &specs.Spec{
		Version:  specs.Version,
		Root:     &specs.Root{Path: root},
		Hostname: hostname(b),
		Mounts:   mounts,
		Process: &specs.Process{
			Cwd: "/", NoNewPrivileges: true, Capabilities: initCapabilities(),
		},
		Linux: &specs.Linux{
			Namespaces:    namespaces(),
			UIDMappings:   []specs.LinuxIDMapping{{ContainerID: 0, HostID: uint32(b.UIDBase), Size: idsPerBox}},
			GIDMappings:   []specs.LinuxIDMapping{{ContainerID: 0, HostID: uint32(b.UIDBase), Size: idsPerBox}},
			CgroupsPath:   groupParent + "/" + b.ID,
			Resources:     resources(b.Options, cpus),
			MaskedPaths:   masked,
			ReadonlyPaths: readOnly,
			// Nested user namespaces are how most kernel holes are reached.
			Sysctl: map[string]string{"user.max_user_namespaces": "0"},
		},
	}
	c, err := specconv.CreateLibcontainerConfig(&specconv.CreateOpts{CgroupName: b.ID, Spec: spec})
	if err != nil {
		return nil, fmt.Errorf("convert the specification of a box: %w", err)
	}
	c.Devices = nil  // mountDev has made them
	c.Networks = nil // init brings the loopback up
	return c, nil
}

// hostname is the box's name where that is a valid one, else the id.
func hostname(b record.Box) string {
	if validHostname(b.Options.Name) {
		return b.Options.Name
	}
	return b.ID
}

func validHostname(name string) bool {
	if name == "" || len(name) > 63 || name[0] == '-' || name[len(name)-1] == '-' {
		return false
	}
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

func namespaces() []specs.LinuxNamespace {
	var n []specs.LinuxNamespace
	for _, t := range []specs.LinuxNamespaceType{
		specs.UserNamespace, specs.MountNamespace, specs.PIDNamespace, specs.NetworkNamespace,
		specs.IPCNamespace, specs.UTSNamespace, specs.CgroupNamespace,
	} {
		n = append(n, specs.LinuxNamespace{Type: t})
	}
	return n
}

// mounts are those that need the box's own namespaces; mountDev makes the rest.
// One that is not bound to cpus ("") sees all of the host's.
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

// masked and readOnly are what of /proc and /sys tells of the host or moves it.
var (
	masked = []string{
		"/proc/acpi", "/proc/asound", "/proc/cmdline", "/proc/config.gz", "/proc/interrupts", "/proc/iomem", "/proc/ioports",
		"/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list",
		"/proc/timer_stats", "/proc/tty/driver",
		"/sys/devices/virtual/powercap", "/sys/firmware", "/sys/kernel/boot_params", "/sys/kernel/vmcoreinfo",
	}
	readOnly = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// resources are the limits of the whole box; its commands' own are set on their
// group. The devices that libcontainer
// always allows (null, zero, random, terminals) are added to the rule.
func resources(o options.Box, cpus string) *specs.LinuxResources {
	memory, pids := int64(o.MemoryMiB)<<20+initMemory, int64(options.MaxProcesses+initProcesses)
	period, quota := uint64(100_000), int64(o.CPUs)*100_000 // microseconds
	return &specs.LinuxResources{
		Memory:  &specs.LinuxMemory{Limit: &memory, Swap: swapLimit(memory)},
		CPU:     &specs.LinuxCPU{Period: &period, Quota: &quota, Cpus: cpus},
		Pids:    &specs.LinuxPids{Limit: &pids},
		Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}},
	}
}

// swapLimit closes swap: on v1 only where the kernel accounts for it.
func swapLimit(memory int64) *int64 {
	const v1 = "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes"
	if !cgroups.IsCgroup2UnifiedMode() && unix.Access(v1, unix.F_OK) != nil {
		return nil
	}
	return &memory
}

// initCapabilities are what init has, within the box's user namespace: what
// commands have, and what it takes to look after them.
func initCapabilities() *specs.LinuxCapabilities {
	c := []string{
		"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL",
		"CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP",
		"CAP_SETUID", "CAP_SYS_ADMIN", "CAP_SYS_CHROOT", "CAP_SYS_RESOURCE", "CAP_SYS_TTY_CONFIG",
	}
	return &specs.LinuxCapabilities{Bounding: c, Effective: c, Permitted: c}
}
