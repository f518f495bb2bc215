// Package landlock denies the calling thread, and all that it starts, kinds of access by
// the kernel's Landlock.
package landlock

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Version returns the version of Landlock that the kernel has. Errors: those of the
// kernel, which may lack it or have it turned off.
func Version() (int, error) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(version), nil
}

// Rules deny all that they handle, except what is permitted.
type Rules struct{ fd int }

// New returns rules that handle attr, all of which the kernel must know. The caller
// closes them.
func New(attr unix.LandlockRulesetAttr) (Rules, error) {
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return Rules{}, fmt.Errorf("make a Landlock ruleset: %w", errno)
	}
	return Rules{int(fd)}, nil
}

// Close closes the rules. Who is denied something by them stays so.
func (r Rules) Close() { _ = unix.Close(r.fd) }

// Permit permits rights on the file name, and on all that is below it.
func (r Rules) Permit(name string, rights uint64) error {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	defer unix.Close(fd)
	return r.PermitFile(fd, name, rights)
}

// PermitFile does the same for a file that is open.
func (r Rules) PermitFile(fd int, name string, rights uint64) error {
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)} //nolint:gosec // a descriptor
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("permit %s: %w", name, errno)
	}
	return nil
}

// Enter applies the rules to the calling thread, which has no_new_privs set.
func (r Rules) Enter() error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0); errno != 0 {
		return fmt.Errorf("enter the Landlock ruleset: %w", errno)
	}
	return nil
}
