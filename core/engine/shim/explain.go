package shim

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// doubtful are the kinds that a step may have taken a shortage for.
var doubtful = []fault.Kind{fault.Engine, fault.Unsupported, fault.Upstream, fault.ResourceExhausted}

// explain classifies the error with which a box could not be started. On a full
// disk each step fails with an error of its own, and init may even end without
// saying anything. So explain looks for itself whether a disk is full: the
// home's, and the box's, which is mounted at root. before is what the home's had
// run out of when the start began, "" for nothing: since then room may have been
// freed.
func (l launcher) explain(err error, root, before string) error {
	if f := fault.Of(err); fault.Classified(err) && !slices.Contains(doubtful, f.Kind) {
		return err
	}
	if what := cmp.Or(before, exhausted(l.home)); what != "" {
		return fault.Wrap(fault.Storage, err, "the disk of the home %s has no %s left: free some", l.home, what)
	}
	if what := exhausted(root); what != "" {
		return fault.Wrap(fault.Storage, err, "the box's disk has no %s left: free some", what)
	}
	return engineFault(err)
}

// exhausted returns what a file system has run out of, "space" or "inodes", or
// "" if it has enough of both.
func exhausted(path string) string {
	var st unix.Statfs_t
	switch err := unix.Statfs(path, &st); {
	case err != nil:
		return ""
	case st.Bavail*uint64(st.Bsize) < leastSpace:
		return "space"
	case st.Files > 0 && st.Ffree < leastFiles:
		return "inodes"
	}
	return ""
}

// leastSpace (in bytes) and leastFiles are below what a disk counts as full once a
// start has failed. The start needs less: a few directories and files of a few bytes.
// But on a full disk room comes free and goes all the time, in pieces of this size.
const (
	leastSpace = 4 << 20
	leastFiles = 16
)

// engineFault classifies errors of libcontainer and init.
func engineFault(err error) error {
	// What a step takes a shortage for counts as little. Go reports EBADF for a child
	// that may not have a descriptor of so high a number, and netlink's errors have the
	// kernel's as text alone.
	if fault.Short(err) || errors.Is(err, unix.EBADF) || strings.Contains(err.Error(), unix.EMFILE.Error()) {
		return fault.Wrap(fault.ResourceExhausted, err, "make the box: raise the limit of open files (ulimit -n)")
	}
	if fault.Classified(err) {
		return err
	}
	if _, ok := fault.Host(err); ok {
		return fault.Disk(err, "make the box")
	}
	return fault.Wrap(fault.Engine, err, "make the box")
}
