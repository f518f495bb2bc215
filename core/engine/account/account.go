// Package account reads the accounts of a box: its /etc/passwd and /etc/group.
// These files belong to the box, so they may be of any size and kind.
package account

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The files with the accounts of a box.
const (
	Users  = "/etc/passwd"
	Groups = "/etc/group"
)

// maxAccounts bounds the bytes that are read of a file. Accounts beyond it are
// unknown.
const maxAccounts = 1 << 20

// maxID is the largest user or group id in a box.
const maxID = 65535

// Each calls f with the fields of each well-formed line of a file until f returns
// false. A file that is missing, or not a regular file, counts as empty.
func Each(path string, f func([]string) bool) {
	file, err := open(path)
	if err != nil {
		return
	}
	defer file.Close()
	if st, err := file.Stat(); err != nil || !st.Mode().IsRegular() {
		return
	}
	b, err := io.ReadAll(io.LimitReader(file, maxAccounts))
	if err != nil {
		return
	}
	fields := 7
	if path == Groups {
		fields = 4
	}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		if parts := strings.Split(s.Text(), ":"); len(parts) == fields && !f(parts) {
			return
		}
	}
}

// open opens a file without waiting for it, and never by the name of a descriptor
// of this process (/proc/self/fd/N): init has some that lead outside the box.
func open(path string) (*os.File, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// ID reads a user or group id. ok is false if no user or group of a box can have
// it.
func ID(s string) (id uint32, ok bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err == nil && n <= maxID
}

// Names returns the names that a file gives to ids. Of several names of one id
// the first counts.
func Names(path string) map[uint32]string {
	names := map[uint32]string{}
	Each(path, func(fields []string) bool {
		if id, ok := ID(fields[2]); ok && names[id] == "" {
			names[id] = fields[0]
		}
		return true
	})
	return names
}
