package transfer

import (
	"os"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/account"
	"sandbox/core/fault"
)

// owner is who gets what is made. The zero value is who makes it.
type owner struct {
	uid, gid uint32
	other    bool
}

// ownerOf returns the user of a name; "" is the zero value. Errors: InvalidArgument.
func ownerOf(name string) (o owner, err error) {
	if name == "" {
		return o, nil
	}
	account.Each(account.Users, func(f []string) bool {
		uid, ok1 := account.ID(f[2])
		gid, ok2 := account.ID(f[3])
		if f[0] == name && ok1 && ok2 {
			o = owner{uid, gid, true}
		}
		return !o.other
	})
	if !o.other {
		err = fault.New(fault.InvalidArgument, "the box has no user %.300q", name)
	}
	return o, err
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
