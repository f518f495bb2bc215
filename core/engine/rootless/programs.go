package rootless

import (
	"context"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// Connector is a program that connects the boxes of a user to the host's network.
type Connector struct {
	Path  string
	Slirp bool // it is slirp4netns, and not pasta
}

// FindConnector looks for pasta, and for slirp4netns where there is no pasta. Errors:
// Unsupported.
func FindConnector() (Connector, error) {
	var c Connector
	var err error
	if c.Path, err = exec.LookPath("pasta"); err != nil {
		c.Slirp = true
		c.Path, err = exec.LookPath("slirp4netns")
	}
	if err != nil {
		return c, fault.New(fault.Unsupported, "the network of a user who is not root needs pasta: sudo apt-get install passt, or use network None")
	}
	if err := unix.Access(tunDevice, unix.R_OK|unix.W_OK); err != nil {
		return c, fault.Wrap(fault.Unsupported, err, "the network of a user who is not root needs %s: sudo chmod 666 %[1]s (sudo modprobe tun, if it is missing), or use network None", tunDevice)
	}
	return c, nil
}

// Version returns what the program says of its version, in one line.
func (c Connector) Version(ctx context.Context) string {
	said, _ := exec.CommandContext(ctx, c.Path, "--version").Output() // one that says nothing has no version
	line, _, _ := strings.Cut(string(said), "\n")
	return line
}

// tunDevice is the device with which these programs make an interface.
const tunDevice = "/dev/net/tun"
