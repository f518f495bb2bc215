// class: cgroup, proc and sys writes
// order: 3
// What /proc, /sys and cgroups have for the host's administrator, no box changes.
#include "attack.h"

static enum verdict made(const struct attack *a) { return refused(mkdir(a->text, 0755)); }

static enum verdict chowned(const struct attack *a) { return refused(chown(a->text, 12345, 12345)); }

static enum verdict modes(const struct attack *a) { return refused(chmod(a->text, 0777)); }

// read_back reads a file that tells of the host: nothing may come.
static enum verdict read_back(const struct attack *a) {
  char text[64];
  int fd = open(a->text, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return refused(-1);
  long n = read(fd, text, sizeof text);
  if (n == 0) return told(HELD, "it is empty");
  return refused(n);
}

#define WRITE(path) {"write " path, written, path}
#define READ(path) {"read " path, read_back, path}

static const struct attack all[] = {
    {"a core dump by a program of its own", given, "/proc/sys/kernel/core_pattern", {(long)"|/tmp/evil"}},
    {"a module loader of its own", given, "/proc/sys/kernel/modprobe", {(long)"/tmp/evil"}},
    {"a hotplug helper of its own", given, "/proc/sys/kernel/hotplug", {(long)"/tmp/evil"}},
    {"a uevent helper of its own", given, "/sys/kernel/uevent_helper", {(long)"/tmp/evil"}},
    {"a binary format of its own", given, "/proc/sys/fs/binfmt_misc/register", {(long)":x:M::x::/tmp/evil:"}},
    {"a panic by sysrq", given, "/proc/sysrq-trigger", {(long)"h"}},
    {"a release agent", given, "/sys/fs/cgroup/release_agent", {(long)"/tmp/evil"}},
    {"a release agent of memory", given, "/sys/fs/cgroup/memory/release_agent", {(long)"/tmp/evil"}},
    WRITE("/proc/sys/kernel/core_uses_pid"),
    WRITE("/proc/sys/kernel/hostname"),
    WRITE("/proc/sys/kernel/domainname"),
    WRITE("/proc/sys/kernel/sysrq"),
    WRITE("/proc/sys/kernel/panic"),
    WRITE("/proc/sys/kernel/panic_on_oops"),
    WRITE("/proc/sys/kernel/pid_max"),
    WRITE("/proc/sys/kernel/threads-max"),
    WRITE("/proc/sys/kernel/dmesg_restrict"),
    WRITE("/proc/sys/kernel/kptr_restrict"),
    WRITE("/proc/sys/kernel/perf_event_paranoid"),
    WRITE("/proc/sys/kernel/unprivileged_bpf_disabled"),
    WRITE("/proc/sys/kernel/randomize_va_space"),
    WRITE("/proc/sys/kernel/modules_disabled"),
    WRITE("/proc/sys/kernel/printk"),
    WRITE("/proc/sys/kernel/msgmax"),
    WRITE("/proc/sys/kernel/shmmax"),
    WRITE("/proc/sys/kernel/sem"),
    WRITE("/proc/sys/kernel/ns_last_pid"),
    WRITE("/proc/sys/kernel/keys/maxkeys"),
    WRITE("/proc/sys/user/max_user_namespaces"),
    WRITE("/proc/sys/user/max_inotify_watches"),
    WRITE("/proc/sys/vm/overcommit_memory"),
    WRITE("/proc/sys/vm/drop_caches"),
    WRITE("/proc/sys/vm/panic_on_oom"),
    WRITE("/proc/sys/vm/mmap_min_addr"),
    WRITE("/proc/sys/vm/nr_hugepages"),
    WRITE("/proc/sys/fs/file-max"),
    WRITE("/proc/sys/fs/protected_symlinks"),
    WRITE("/proc/sys/fs/suid_dumpable"),
    WRITE("/proc/sys/fs/mqueue/queues_max"),
    WRITE("/proc/sys/net/ipv4/ip_forward"),
    WRITE("/proc/sys/net/ipv4/conf/all/route_localnet"),
    WRITE("/proc/sys/net/ipv4/conf/all/rp_filter"),
    WRITE("/proc/sys/net/ipv4/ping_group_range"),
    WRITE("/proc/sys/net/ipv6/conf/all/forwarding"),
    WRITE("/proc/sys/net/core/bpf_jit_enable"),
    WRITE("/proc/sys/net/core/somaxconn"),
    WRITE("/proc/sys/net/netfilter/nf_conntrack_max"),
    WRITE("/proc/irq/default_smp_affinity"),
    WRITE("/proc/mtrr"),
    WRITE("/proc/bus/pci/00/00.0"),
    WRITE("/proc/acpi/alarm"),
    WRITE("/proc/scsi/scsi"),
    WRITE("/proc/kcore"),
    WRITE("/proc/kpageflags"),
    WRITE("/sys/kernel/mm/transparent_hugepage/enabled"),
    WRITE("/sys/kernel/mm/ksm/run"),
    WRITE("/sys/kernel/profiling"),
    WRITE("/sys/power/state"),
    WRITE("/sys/module/printk/parameters/time"),
    WRITE("/sys/class/net/lo/mtu"),
    WRITE("/sys/devices/system/cpu/cpu1/online"),
    WRITE("/sys/block/vda/queue/scheduler"),
    WRITE("/sys/bus/pci/rescan"),
    WRITE("/sys/fs/cgroup/cgroup.procs"),
    WRITE("/sys/fs/cgroup/memory.max"),
    WRITE("/sys/fs/cgroup/pids.max"),
    WRITE("/sys/fs/cgroup/cgroup.subtree_control"),
    WRITE("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
    WRITE("/sys/fs/cgroup/devices/devices.allow"),
    WRITE("/sys/fs/cgroup/pids/pids.max"),
    WRITE("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
    WRITE("/sys/fs/cgroup/freezer/freezer.state"),
    {"make a cgroup", made, "/sys/fs/cgroup/mine"},
    {"make a cgroup of memory", made, "/sys/fs/cgroup/memory/mine"},
    {"own a file of /proc/sys", chowned, "/proc/sys/kernel/core_pattern"},
    {"own /sys", chowned, "/sys"},
    {"open a file of /proc/sys to all", modes, "/proc/sys/kernel/core_pattern"},
    {"open /sys/kernel to all", modes, "/sys/kernel"},
    READ("/proc/kcore"),
    READ("/proc/kmsg"),
    READ("/proc/keys"),
    READ("/proc/timer_list"),
    READ("/proc/sched_debug"),
    READ("/proc/iomem"),
    READ("/proc/config.gz"),
    READ("/proc/cmdline"),
    READ("/proc/sysvipc/shm/../../kcore"),
    READ("/proc/pagetypeinfo"),
    READ("/proc/kpagecount"),
    READ("/proc/vmallocinfo"),
    READ("/proc/slabinfo"),
    READ("/sys/firmware/acpi/tables/DSDT"),
    READ("/sys/firmware/dmi/tables/DMI"),
    READ("/sys/kernel/debug/x"),
    READ("/sys/kernel/boot_params/data"),
    READ("/sys/kernel/notes/../vmcoreinfo"),
};

int main(void) { return ATTACK_ALL(all); }
