// Package rootless finds what a user who is not root has for making boxes:
// ranges of subordinate ids, the programs that map and connect them, and
// directories of cgroups that root has given away. What is missing, it says with
// the line that mends it.
package rootless

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"os/user"
	"strconv"
	"strings"

	"sandbox/core/fault"
)

// Subordinates is how many ids a user needs beside the own one: boxes have the ids 0,
// which is the user's own, to 65,535.
const Subordinates = 1<<16 - 1

// Span is a range of ids of the host.
type Span struct{ Start, Count int }

// The files in which root gives ranges of ids to users.
const (
	uidFile = "/etc/subuid"
	gidFile = "/etc/subgid"
)

// maxFile bounds in bytes how much of these files is read.
const maxFile = 1 << 20

// spans returns the subordinate ids of the user who calls, as many as boxes need.
// Errors: Unsupported, which names the line that gives the user enough.
func spans() (uids, gids []Span, err error) {
	name, uid := account()
	if uids, err = spansOf(uidFile, "--add-subuids", name, uid); err != nil {
		return nil, nil, err
	}
	gids, err = spansOf(gidFile, "--add-subgids", name, uid)
	return uids, gids, err
}

// account returns the name of the user who calls, or the number if that has no name.
func account() (name string, uid int) {
	uid = os.Getuid()
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return strconv.Itoa(uid), uid
	}
	return u.Username, uid
}

func spansOf(file, flag, name string, uid int) ([]Span, error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.Unsupported, err, "read the ranges of ids of users")
	}
	own, free := parse(text[:min(len(text), maxFile)], name, uid)
	if own = enough(own); own != nil {
		return own, nil
	}
	return nil, fault.New(fault.Unsupported, "boxes have no user but root, as %s gives %s fewer than %d ids: sudo usermod %s %d-%d %s",
		file, name, Subordinates, flag, free, free+Subordinates, name)
}

// firstFree is the first id that distributions give to a user's range.
const firstFree = 100_000

// parse returns the ranges in the text of /etc/subuid or /etc/subgid that are of the user
// with a name and a number, and an id from which on no user has one. Lines that are none
// are left out, as newuidmap does.
func parse(text []byte, name string, uid int) (own []Span, free int) {
	free = firstFree
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		f := strings.Split(strings.TrimSpace(lines.Text()), ":")
		if len(f) != 3 {
			continue
		}
		start, err := strconv.ParseUint(f[1], 10, 32)
		count, err2 := strconv.ParseUint(f[2], 10, 32)
		if err != nil || err2 != nil || start == 0 || count == 0 || start+count > math.MaxUint32 {
			continue
		}
		free = max(free, int(start+count))
		if f[0] == name || f[0] == strconv.Itoa(uid) {
			own = append(own, Span{int(start), int(count)})
		}
	}
	return own, free
}

// enough returns the first of spans, cut to as many ids as boxes need, or nil if they
// have fewer.
func enough(spans []Span) (cut []Span) {
	left := Subordinates
	for _, s := range spans {
		s.Count = min(s.Count, left)
		cut = append(cut, s)
		if left -= s.Count; left == 0 {
			return cut
		}
	}
	return nil
}
