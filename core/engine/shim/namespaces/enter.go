package namespaces

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/rootless"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// inherited are the descriptors that the shim is started with beside the standard ones,
// the last of which tells the starter how that went.
const (
	firstInherited = 3
	readyFD        = 5
)

// Enter becomes the shim of the home, in its namespaces. It returns only what prevents
// that, which it has told the starter.
func Enter(home string) error {
	err := enter(home)
	e := fault.Of(err)
	_ = json.NewEncoder(os.NewFile(readyFD, "ready")).Encode(wire.Error{Kind: e.Kind, Message: e.Message})
	return err
}

// groupsVariable holds the cgroups that the user was given, for the shim: in its namespaces
// the user has another number.
const groupsVariable = "SANDBOX_GROUPS"

// Groups returns the cgroups that were found by [Enter], for the shim that it became.
func Groups() (given rootless.Groups, err error) {
	err = json.Unmarshal([]byte(os.Getenv(groupsVariable)), &given)
	return given, fault.Wrap(fault.Engine, errors.Join(err, os.Unsetenv(groupsVariable)), "learn which cgroups the user was given")
}

func enter(home string) error {
	for fd := firstInherited; fd <= readyFD; fd++ { // a process that is started here must not keep them open
		unix.CloseOnExec(fd)
	}
	given, err := rootless.Delegated()
	if err != nil {
		return err
	}
	dirs, err := json.Marshal(given)
	if err != nil {
		return err
	}
	fds, err := find(home)
	if err != nil {
		return err
	}
	for _, fd := range append(fds, firstInherited, firstInherited+1, readyFD) {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fault.Wrap(fault.Engine, err, "enter the namespaces of the home")
		}
	}
	env := append(os.Environ(), fmt.Sprintf("SANDBOX_JOIN=%d,%d", fds[0], fds[1]), groupsVariable+"="+string(dirs))
	err = unix.Exec("/proc/self/exe", []string{"sandbox-shim", "serve-user", home}, env)
	return fault.Wrap(fault.Engine, err, "start the shim in the namespaces of the home")
}
