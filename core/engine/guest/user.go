package guest

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"sandbox/core/engine/account"
	"sandbox/core/userns"
)

// user is the user that a command runs as.
type user struct {
	name   string
	uid    uint32
	gid    uint32
	groups []uint32
	home   string
}

func (u user) credential() *syscall.Credential {
	return &syscall.Credential{Uid: u.uid, Gid: u.gid, Groups: u.groups, NoSetGroups: userns.OneID()}
}

// errNoUser is in the chain of the error for a user or group that the box does
// not have.
var errNoUser = errors.New("in the box")

// errOneID is the error for another user than root where there is no other.
var errOneID = errors.New("the user who made the box had no range of ids, so it has no user but root: " +
	"sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER")

// lookUpUser returns the user for "NAME|UID[:GROUP|GID]", by the box's own
// accounts. A name must have an account; a numeric id need not. Errors: errNoUser,
// errOneID.
func lookUpUser(spec string) (user, error) {
	u, err := findUser(spec)
	if err == nil && (u.uid != 0 || u.gid != 0) && userns.OneID() {
		return user{}, fmt.Errorf("user %.300q: %w", spec, errOneID)
	}
	return u, err
}

func findUser(spec string) (user, error) {
	name, group, hasGroup := strings.Cut(spec, ":")
	u := user{name: name, home: "/"}
	found := false
	account.Each(account.Users, func(f []string) bool {
		uid, ok1 := account.ID(f[2])
		gid, ok2 := account.ID(f[3])
		if !ok1 || !ok2 || (f[0] != name && f[2] != name) {
			return true
		}
		u = user{name: f[0], uid: uid, gid: gid, home: first(f[5], "/")}
		found = true
		return false
	})
	if !found {
		uid, ok := account.ID(name)
		if !ok {
			return user{}, fmt.Errorf("user %.300q: no such user %w", name, errNoUser)
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
	if gid, ok := account.ID(group); ok {
		u.gid = gid
		return nil
	}
	err := fmt.Errorf("group %.300q: no such group %w", group, errNoUser)
	account.Each(account.Groups, func(f []string) bool {
		gid, ok := account.ID(f[2])
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
	account.Each(account.Groups, func(f []string) bool {
		for _, member := range strings.Split(f[3], ",") {
			if gid, ok := account.ID(f[2]); ok && member == u.name {
				u.groups = append(u.groups, gid)
			}
		}
		return len(u.groups) < maxGroups
	})
}
