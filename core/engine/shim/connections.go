package shim

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// connections is what the kernel tells of the TCP connections of a box.
type connections struct {
	accepted int64 // since the box began
	open     bool  // by someone outside of the box, now
}

// connectionsOf returns the connections of the box whose init has the process id pid.
// The ids of the box's own users are those from base.
func connectionsOf(pid, base int) (c connections, err error) {
	if c.accepted, err = inNet(pid, "snmp", passiveOpens); err != nil {
		return c, err
	}
	for _, name := range []string{"tcp", "tcp6"} {
		open, err := inNet(pid, name, func(r io.Reader) (bool, error) { return reached(r, base) })
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without IPv6 has no tcp6
			return c, err
		}
		c.open = c.open || open
	}
	return c, nil
}

// inNet reads a file about the network of a process.
func inNet[T any](pid int, name string, read func(io.Reader) (T, error)) (value T, err error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", pid, name))
	if err != nil {
		return value, err
	}
	defer f.Close()
	return read(io.LimitReader(f, maxTable))
}

// maxTable bounds what is read of a box's table of connections: some 7,000 of them. A
// box that has more of its own hides those of others, and counts as not used.
const maxTable = 1 << 20

// passiveOpens reads how many connections were accepted from /proc/net/snmp, where a
// line of names stands before one of numbers.
func passiveOpens(r io.Reader) (int64, error) {
	var names []string
	for lines := bufio.NewScanner(r); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || fields[0] != "Tcp:" {
			continue
		}
		for i, name := range names {
			if name == "PassiveOpens" && i < len(fields) {
				return strconv.ParseInt(fields[i], 10, 64)
			}
		}
		names = fields
	}
	return 0, fmt.Errorf("the kernel does not count accepted connections")
}

// These are the states of connections in /proc/net/tcp.
const (
	established = "01"
	finWait2    = "05" // half closed, by this side
	closeWait   = "08" // and by the other one
	listening   = "0A"
)

// reached reports whether a table of connections has one that comes from outside of
// the box: one of a socket that is no user's of the box, or one to a port that the box
// listens on from an address that is not its own.
func reached(r io.Reader, base int) (bool, error) {
	ports, from := map[string]bool{}, map[string]bool{} // where the box listens; where connections come to
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 8 {
			continue
		}
		local, port, _ := strings.Cut(f[1], ":")
		remote, _, _ := strings.Cut(f[2], ":")
		uid, err := strconv.Atoi(f[7])
		switch state := f[3]; {
		case err != nil: // the line of names
		case state == listening:
			ports[port] = true
		case state != established && state != finWait2 && state != closeWait:
		case uid < base || uid >= base+idsPerBox:
			return true, nil
		case remote != local:
			from[port] = true
		}
	}
	for port := range from {
		if ports[port] {
			return true, nil
		}
	}
	return false, lines.Err()
}
