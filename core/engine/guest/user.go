package guest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxAccounts bounds the bytes that are read of /etc/passwd and /etc/group. They
// belong to the box and may be of any size; accounts beyond the bound are
// unknown to init.
const maxAccounts = 1 << 20

// maxID is the largest user or group id in a box.
const maxID = 65535

// user is the user that a command runs as.
type user struct {
	name   string
	uid    uint32
	gid    uint32
	groups []uint32
	home   string
}

func (u user) credential() *syscall.Credential {
	return &syscall.Credential{Uid: u.uid, Gid: u.gid, Groups: u.groups}
}

// lookUpUser returns the user for "NAME|UID[:GROUP|GID]", by the box's own
// accounts. A name must have an account; a numeric id need not.
func lookUpUser(spec string) (user, error) {
	name, group, hasGroup := strings.Cut(spec, ":")
	u := user{name: name, home: "/"}
	found := false
	eachAccount("/etc/passwd", 7, func(f []string) bool {
		uid, ok1 := parseID(f[2])
		gid, ok2 := parseID(f[3])
		if !ok1 || !ok2 || (f[0] != name && f[2] != name) {
			return true
		}
		u = user{name: f[0], uid: uid, gid: gid, home: first(f[5], "/")}
		found = true
		return false
	})
	if !found {
		uid, ok := parseID(name)
		if !ok {
			return user{}, fmt.Errorf("user %q: no such user in the box", name)
		}
		u.uid = uid
		if uid == 0 { // a box without accounts still has root
			u.name, u.home = "root", "/root"
		}
	}
	if hasGroup {
		return u, u.setGroup(group)
	}
	u.addGroups()
	return u, nil
}

func (u *user) setGroup(group string) error {
	if gid, ok := parseID(group); ok {
		u.gid = gid
		return nil
	}
	err := fmt.Errorf("group %q: no such group in the box", group)
	eachAccount("/etc/group", 4, func(f []string) bool {
		gid, ok := parseID(f[2])
		if f[0] != group || !ok {
			return true
		}
		u.gid, err = gid, nil
		return false
	})
	return err
}

// maxGroups is how many supplementary groups a user may have.
const maxGroups = 1024

func (u *user) addGroups() {
	eachAccount("/etc/group", 4, func(f []string) bool {
		for _, member := range strings.Split(f[3], ",") {
			if gid, ok := parseID(f[2]); ok && member == u.name {
				u.groups = append(u.groups, gid)
			}
		}
		return len(u.groups) < maxGroups
	})
}

// eachAccount calls f with the fields of each well-formed line until f returns
// false. A file that is missing, or not a regular file, counts as empty.
func eachAccount(path string, fields int, f func([]string) bool) {
	fd, err := openNamed(path, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	if st, err := file.Stat(); err != nil || !st.Mode().IsRegular() {
		return
	}
	b, err := readBounded(file, maxAccounts)
	if err != nil {
		return
	}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		if parts := strings.Split(s.Text(), ":"); len(parts) == fields && !f(parts) {
			return
		}
	}
}

func readBounded(r io.Reader, n int64) ([]byte, error) { return io.ReadAll(io.LimitReader(r, n)) }

func parseID(s string) (uint32, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err == nil && n <= maxID
}
