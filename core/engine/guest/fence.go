package guest

import (
	"golang.org/x/sys/unix"

	"sandbox/core/landlock"
)

// fence takes more from the calling thread once the box is known and init is in its root,
// which the rules name.
func (g *guest) fence() error {
	if err := deny(); err != nil || !g.config.Strict {
		return err
	}
	return strict.Load()
}

// deny denies the calling thread, by Landlock, what no command may do in any case. It is
// a wall behind capabilities and the filter of system calls: whoever is behind it mounts
// nothing, traces only who is behind it too, and makes no devices. One that marks a file
// as removed (0:0) needs no capability, and would stay in a volume of the host. A kernel
// without Landlock has this wall less.
//
// Signals are not kept from init: it drops them all, and `kill -0 1` is to find it.
func deny() error {
	version, err := landlock.Version()
	if err != nil || version < 2 { // the first would deny to rename a file into another directory
		return nil //nolint:nilerr // there are walls before it
	}
	handled := unix.LandlockRulesetAttr{
		Handled_access_fs: unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_REFER,
	}
	if version >= 6 {
		handled.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	rules, err := landlock.New(handled)
	if err != nil {
		return err
	}
	defer rules.Close()
	if err := rules.Permit("/", unix.LANDLOCK_ACCESS_FS_REFER); err != nil {
		return err
	}
	return rules.Enter()
}

// keepCode keeps init's memory from becoming code, in a kernel that can (6.3). Commands
// may need that, and are not held to it (6.6).
func keepCode() {
	_ = unix.Prctl(unix.PR_SET_MDWE, unix.PR_MDWE_REFUSE_EXEC_GAIN|unix.PR_MDWE_NO_INHERIT, 0, 0, 0)
}
