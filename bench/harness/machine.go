package harness

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Facts are what a reader must know about the machine to judge the figures.
type Facts struct {
	Time       time.Time `json:"time"`
	Kernel     string    `json:"kernel"`
	CPU        string    `json:"cpu"`
	CPUs       int       `json:"cpus"`
	MemoryMiB  int       `json:"memory_mib"`
	Cgroups    string    `json:"cgroups"`
	FileSystem string    `json:"file_system"` // the home's
	Load       string    `json:"load"`        // averages over 1, 5 and 15 minutes
	Go         string    `json:"go"`
}

// Machine returns the facts. What can't be read is left empty.
func Machine(home string) Facts {
	f := Facts{Time: time.Now().UTC(), CPUs: runtime.NumCPU(), Go: runtime.Version(), Cgroups: cgroupLayout(), FileSystem: fileSystem(home)}
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		f.Kernel = unix.ByteSliceToString(uts.Release[:])
	}
	var si unix.Sysinfo_t
	if unix.Sysinfo(&si) == nil {
		f.MemoryMiB = int(si.Totalram * uint64(si.Unit) >> 20)
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		f.Load = strings.Join(strings.Fields(string(load))[:3], " ")
	}
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	if _, after, ok := strings.Cut(string(cpuinfo), "model name\t: "); ok {
		f.CPU, _, _ = strings.Cut(after, "\n")
	}
	return f
}

// Print writes the facts on one line.
func (f Facts) Print(w io.Writer) {
	fmt.Fprintf(w, "%s: kernel %s, %d x %s, %d MiB, cgroup %s, home on %s, load %s, %s\n",
		f.Time.Format(time.RFC3339), f.Kernel, f.CPUs, f.CPU, f.MemoryMiB, f.Cgroups, f.FileSystem, f.Load, f.Go)
}

const unified = "/sys/fs/cgroup/unified" // cgroup2 of a hybrid host

// Hybrid reports whether this host has cgroup v1 and, beside it, cgroup2.
func Hybrid() bool {
	var st unix.Statfs_t
	return unix.Statfs(unified, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
}

func cgroupLayout() string {
	var st unix.Statfs_t
	switch err := unix.Statfs("/sys/fs/cgroup", &st); {
	case err != nil:
		return "none"
	case st.Type == unix.CGROUP2_SUPER_MAGIC:
		return "v2" + favordynmods()
	case Hybrid():
		return "v1 hybrid" + favordynmods()
	}
	return "v1"
}

// favordynmods is a mount option of cgroup2 that shortens the tail of every
// move of a process between cgroups, so a figure is worth little unless it says
// whether the option was on.
func favordynmods() string {
	mounts, _ := os.ReadFile("/proc/self/mounts")
	if strings.Contains(string(mounts), "favordynmods") {
		return " with favordynmods"
	}
	return ""
}

func fileSystem(path string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return err.Error()
	}
	names := map[int64]string{
		unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
		unix.TMPFS_MAGIC: "tmpfs", unix.OVERLAYFS_SUPER_MAGIC: "overlayfs",
	}
	if name, ok := names[st.Type]; ok {
		return name
	}
	return fmt.Sprintf("file system %#x", st.Type)
}
