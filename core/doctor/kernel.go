package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/engine"
)

// needs are the capabilities that it takes to make a box.
var needs = []struct {
	name string
	bit  int
}{
	{"CAP_CHOWN", unix.CAP_CHOWN}, {"CAP_DAC_OVERRIDE", unix.CAP_DAC_OVERRIDE}, {"CAP_FOWNER", unix.CAP_FOWNER},
	{"CAP_KILL", unix.CAP_KILL}, {"CAP_SETGID", unix.CAP_SETGID}, {"CAP_SETUID", unix.CAP_SETUID},
	{"CAP_NET_ADMIN", unix.CAP_NET_ADMIN}, {"CAP_SYS_ADMIN", unix.CAP_SYS_ADMIN},
}

// asRoot is the command line for a check that only root can make.
const asRoot = "sudo sandbox doctor"

func root(context.Context, engine.Config) (string, *lack) {
	var data [2]unix.CapUserData
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]); err != nil {
		return "uid 0", &lack{"the capabilities can't be read: " + err.Error(), ""}
	}
	var absent []string
	for _, need := range needs {
		if data[need.bit/32].Effective&(1<<(need.bit%32)) == 0 {
			absent = append(absent, need.name)
		}
	}
	if absent != nil {
		return "uid 0, not all capabilities", &lack{strings.Join(absent, ", ") + " missing: this root user is itself restricted", "run on the host, or give its container --privileged"}
	}
	return "uid 0, all capabilities that are needed", nil
}

// The oldest kernel that will do is 5.19, the first whose overlayfs can have
// id-mapped layers.
const (
	oldestMajor = 5
	oldestMinor = 19
)

func kernel(context.Context, engine.Config) (string, *lack) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", &lack{"the kernel's version can't be read: " + err.Error(), ""}
	}
	release := unix.ByteSliceToString(u.Release[:])
	if !atLeast(release, oldestMajor, oldestMinor) {
		return release, &lack{fmt.Sprintf("needs %d.%d or newer (overlays of id-mapped layers)", oldestMajor, oldestMinor), "apt-get install linux-image-amd64 && reboot"}
	}
	return release, nil
}

// atLeast tells whether a kernel release, such as 6.18.5-amd64, is major.minor
// or newer.
func atLeast(release string, major, minor int) bool {
	first, rest, _ := strings.Cut(release, ".")
	second := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	haveMajor, _ := strconv.Atoi(first) // a number that can't be read is 0, which is too old
	haveMinor, _ := strconv.Atoi(second)
	return haveMajor > major || haveMajor == major && haveMinor >= minor
}

func userNamespaces(context.Context, engine.Config) (string, *lack) {
	const limit = "/proc/sys/user/max_user_namespaces"
	text, err := os.ReadFile(limit)
	if err != nil {
		return "", &lack{"the kernel has no user namespaces (CONFIG_USER_NS)", "boot a kernel that has them"}
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	if n == 0 {
		return "at most 0", &lack{limit + " is 0", "sysctl -w user.max_user_namespaces=15000"}
	}
	found := fmt.Sprintf("at most %d", n)
	ns, err := userNamespace()
	switch {
	case err == nil:
		_ = ns.Close()
		return found, nil
	case errors.Is(err, os.ErrPermission):
		return found, &lack{"trying one: " + err.Error(), asRoot}
	}
	return found, &lack{"trying one: " + err.Error(), "sysctl -w user.max_user_namespaces=15000"}
}

func seccomp(context.Context, engine.Config) (string, *lack) {
	actions, err := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail")
	if err != nil || !strings.Contains(string(actions), "errno") {
		return "", &lack{"the kernel has no seccomp filters (CONFIG_SECCOMP_FILTER)", "boot a kernel that has them"}
	}
	return "filters", nil
}

// generations is where the kernel tells whether it reclaims memory by its
// multi-generational lists.
const generations = "/sys/kernel/mm/lru_gen/enabled"

// reclaim reports the kernel's multi-generational lists of pages (MGLRU). By them it does
// not wait until pages are written when a group of little memory is full of those: `dd`
// in a plain group of up to 128 MiB ended as out of memory with Linux 6.12, of 32 MiB
// without them it did not.
func reclaim(context.Context, engine.Config) (string, *lack) {
	text, err := os.ReadFile(generations)
	if err != nil {
		return "no multi-generational lists", nil //nolint:nilerr // an older kernel, or one that was built without
	}
	return generational(string(text))
}

// generational is what a file [generations] with this text tells.
func generational(text string) (string, *lack) {
	if mask, err := strconv.ParseUint(strings.TrimSpace(text), 0, 16); err == nil && mask&1 == 0 {
		return "no multi-generational lists", nil
	}
	return "multi-generational lists", &lack{
		"with these, Linux 6.12 ends commands that write fast as out of memory in boxes of up to 128 MiB",
		"echo n >" + generations,
	}
}
