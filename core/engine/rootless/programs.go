package rootless

import (
	"os/exec"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// MapPrograms returns the paths of the programs that map ids for a user. Errors:
// Unsupported.
func MapPrograms() (uidmap, gidmap string, err error) {
	if uidmap, err = exec.LookPath("newuidmap"); err == nil {
		gidmap, err = exec.LookPath("newgidmap")
	}
	if err != nil {
		return "", "", fault.New(fault.Unsupported, "boxes of a user who is not root need newuidmap and newgidmap: sudo apt-get install uidmap")
	}
	return uidmap, gidmap, nil
}

// Pasta returns the path of the program that connects the boxes of a user to the host's
// network. Errors: Unsupported.
func Pasta() (string, error) {
	path, err := exec.LookPath("pasta")
	if err != nil {
		return "", fault.New(fault.Unsupported, "the network of a user who is not root needs pasta: sudo apt-get install passt, or use network None")
	}
	if err := unix.Access(tunDevice, unix.R_OK|unix.W_OK); err != nil {
		return "", fault.Wrap(fault.Unsupported, err, "the network of a user who is not root needs %s: sudo chmod 666 %[1]s (sudo modprobe tun, if it is missing), or use network None", tunDevice)
	}
	return path, nil
}

// tunDevice is the device with which pasta makes an interface.
const tunDevice = "/dev/net/tun"
