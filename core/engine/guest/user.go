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

// maxAccounts bounds what is read of /etc/passwd and /etc/group: they are the
// box's, and may be of any size. Accounts further down are not known.
const maxAccounts = 1 << 20

// maxID is the last id of a box's range.
const maxID = 65535

// user is who a command runs as.
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

// lookUpUser reads "NAME|UID[:GROUP|GID]" with the box's own accounts. An id
// need not have an account, a name must.
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
		if uid == 0 { // a box without accounts has a root all the same
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

// maxGroups is how many further groups a user may have.
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

// eachAccount calls f with the fields of each well-formed line until it says
// false. A file that is missing, or no file, has no lines.
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
