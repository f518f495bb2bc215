package rootless

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"sandbox/core/fault"
)

// Mapper maps the ids of boxes into a user namespace: 0 to the user's own, and the others
// to the ids that root has given to the user.
type Mapper struct {
	UIDs, GIDs     []Span
	uidmap, gidmap string // the programs
}

// FindMapper returns the mapper of the user who calls. Errors: Unsupported, where root has
// given the user too few ids, or the programs are missing. Boxes have the id 0 alone then,
// and the error names the line that gives them the others.
func FindMapper() (m Mapper, err error) {
	if m.uidmap, err = exec.LookPath("newuidmap"); err == nil {
		m.gidmap, err = exec.LookPath("newgidmap")
	}
	if err != nil {
		return m, fault.New(fault.Unsupported, "boxes have no user but root, as newuidmap and newgidmap are missing: sudo apt-get install uidmap")
	}
	m.UIDs, m.GIDs, err = spans()
	return m, err
}

// Map maps the ids into the user namespace of a process that this one has started. Errors:
// Unsupported.
func (m Mapper) Map(pid int) error {
	if err := run(m.uidmap, mapping(pid, os.Getuid(), m.UIDs)); err != nil {
		return err
	}
	return run(m.gidmap, mapping(pid, os.Getgid(), m.GIDs))
}

func run(program string, args []string) error {
	said, err := exec.Command(program, args...).CombinedOutput()
	return fault.Wrap(fault.Unsupported, err, "map the ids of boxes: %s", said)
}

// mapping returns the arguments with which newuidmap and newgidmap map the ids of boxes
// into the user namespace of a process: 0 to the own id, and the others to spans.
func mapping(pid, own int, spans []Span) []string {
	args := []string{strconv.Itoa(pid), "0", strconv.Itoa(own), "1"}
	inside := 1
	for _, s := range spans {
		args = append(args, fmt.Sprint(inside), fmt.Sprint(s.Start), fmt.Sprint(s.Count))
		inside += s.Count
	}
	return args
}
