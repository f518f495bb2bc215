package transfer

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/account"
	"sandbox/core/fault"
	"sandbox/core/userns"
)

// owner is who gets what is made. The zero value is who makes it.
type owner struct {
	uid, gid uint32
	other    bool
}

// ownerOf returns the owner for "USER[:GROUP]", by the box's own accounts; "" is the zero
// value. A number needs no account. A user without a group has that of its account, or
// else the one of its own number. Where a box has no user but root, all is root's. Errors:
// InvalidArgument.
func ownerOf(spec string) (owner, error) {
	if spec == "" {
		return owner{}, nil
	}
	user, group, grouped := strings.Cut(spec, ":")
	o, err := userOf(user)
	if err == nil && grouped {
		o.gid, err = groupOf(group)
	}
	if userns.OneID() {
		return owner{}, err
	}
	return o, err
}

// userOf returns the user of a name or number.
func userOf(name string) (o owner, err error) {
	account.Each(account.Users, func(f []string) bool {
		uid, ok1 := account.ID(f[2])
		gid, ok2 := account.ID(f[3])
		if f[0] == name && ok1 && ok2 {
			o = owner{uid, gid, true}
		}
		return !o.other
	})
	if !o.other {
		if id, ok := account.ID(name); ok {
			return owner{id, id, true}, nil
		}
		err = fault.New(fault.InvalidArgument, "the box has no user %.300q", name)
	}
	return o, err
}

// groupOf returns the group of a name or number.
func groupOf(name string) (gid uint32, err error) {
	if id, ok := account.ID(name); ok {
		return id, nil
	}
	err = fault.New(fault.InvalidArgument, "the box has no group %.300q", name)
	account.Each(account.Groups, func(f []string) bool {
		id, ok := account.ID(f[2])
		if f[0] != name || !ok {
			return true
		}
		gid, err = id, nil
		return false
	})
	return gid, err
}

// ids returns the ids of the owner.
func (o owner) ids() (uid, gid uint32) {
	if !o.other {
		return uint32(os.Geteuid()), uint32(os.Getegid())
	}
	return o.uid, o.gid
}

// take gives the owner a file that was just made.
func (o owner) take(dir int, name string) error {
	if !o.other {
		return nil
	}
	return unix.Fchownat(dir, name, int(o.uid), int(o.gid), unix.AT_SYMLINK_NOFOLLOW)
}
