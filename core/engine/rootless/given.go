package rootless

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

func delegatedV2() (Groups, error) {
	const line = "the user manager of systemd gives them to who logs in: sudo apt-get install libpam-systemd dbus-user-session, and log in again"
	dir := given(groupsDir, ownGroups()[""], "cgroup.procs")
	if dir == "" {
		return nil, fault.New(fault.Unsupported, "no cgroup was given to this user, so the limits of boxes could not be enforced: %s", line)
	}
	text, _ := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	for _, name := range needed[:3] {
		if !slices.Contains(strings.Fields(string(text)), name) {
			return nil, fault.New(fault.Unsupported, "the cgroup %s has no %s controller, so the limits of boxes could not be enforced: "+
				"sudo systemctl set-property user@%d.service Delegate=yes, and log in again", dir, name, os.Getuid())
		}
	}
	return Groups{"": dir}, nil
}

// given returns the directory of a hierarchy that belongs to this user: the one with the
// user's number, or else the uppermost one that this process is in; "" for none. The
// answer is the same for all processes of the user wherever there is a choice.
func given(root, own, list string) string {
	if dir := filepath.Join(root, fmt.Sprintf("sandbox-%d", os.Getuid())); list == "tasks" && isOurs(dir, list) {
		return dir
	}
	at := root
	for part := range strings.SplitSeq(strings.Trim(own, "/"), "/") {
		at = filepath.Join(at, part)
		if isOurs(at, list) {
			return at
		}
	}
	return ""
}

// isOurs tells whether a group belongs to this user, who may make groups in it then.
func isOurs(dir, list string) bool {
	var st unix.Stat_t
	if unix.Stat(filepath.Join(dir, list), &st) != nil || unix.Stat(dir, &st) != nil {
		return false
	}
	return int(st.Uid) == os.Getuid() && unix.Access(dir, unix.W_OK) == nil
}

// ownGroups returns the groups of this process by the names of controllers; "" stands for
// that of cgroup2.
func ownGroups() map[string]string {
	text, _ := os.ReadFile("/proc/self/cgroup") // without it none was given
	return ParseGroups(string(text))
}

// ParseGroups returns the groups in the text of a /proc/PID/cgroup by the names of
// controllers; "" stands for that of cgroup2.
func ParseGroups(text string) map[string]string {
	own := map[string]string{}
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		own[f[1]] = f[2]
		for name := range strings.SplitSeq(f[1], ",") {
			own[name] = f[2]
		}
	}
	return own
}
