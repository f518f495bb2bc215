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

// givenVariable holds a [Given], for the shim: in its namespaces the user has another number.
const givenVariable = "SANDBOX_GIVEN"

// Given is what root has given to the user. Why says why there are none, with what to do;
// it is "" where there are.
type Given struct {
	Groups rootless.Groups
	Why    string
	WhyIDs string
}

// Found returns what was found by [Enter], for the shim that it became.
func Found() (given Given, err error) {
	err = json.Unmarshal([]byte(os.Getenv(givenVariable)), &given)
	return given, fault.Wrap(fault.Engine, errors.Join(err, os.Unsetenv(givenVariable)), "learn what the user was given")
}

func enter(home string) error {
	for fd := firstInherited; fd <= readyFD; fd++ { // a process that is started here must not keep them open
		unix.CloseOnExec(fd)
	}
	var given Given
	var err error
	if given.Groups, err = rootless.Delegated(); err != nil {
		if err := enterManaged(home); err != nil {
			return err
		}
		given.Why = fault.Of(err).Message
	}
	if _, err := rootless.FindMapper(); err != nil {
		given.WhyIDs = fault.Of(err).Message
	}
	found, err := json.Marshal(given)
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
	env := append(os.Environ(), fmt.Sprintf("SANDBOX_JOIN=%d,%d", fds[0], fds[1]), givenVariable+"="+string(found))
	err = unix.Exec("/proc/self/exe", []string{"sandbox-shim", "serve-user", home}, env)
	return fault.Wrap(fault.Engine, err, "start the shim in the namespaces of the home")
}

// managedVariable is set for a process that the user manager of systemd has started.
const managedVariable = "SANDBOX_MANAGED"

// enterManaged begins anew in a cgroup of the user manager of systemd. It returns nil where
// there is no such manager, or this process is in such a cgroup already.
func enterManaged(home string) error {
	if os.Getenv(managedVariable) != "" {
		return nil
	}
	exe, err := unix.Open("/proc/self/exe", unix.O_PATH, 0)
	if err != nil {
		return fault.Wrap(fault.Engine, err, "find the program of the shim")
	}
	argv, env := rootless.InManager(fmt.Sprintf("/proc/self/fd/%d", exe), "enter", home)
	if argv == nil {
		return unix.Close(exe)
	}
	for fd := firstInherited; fd <= readyFD; fd++ {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fault.Wrap(fault.Engine, err, "hand on what the shim was started with")
		}
	}
	if log, err := unix.Open(logOf(home), unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_CLOEXEC, 0o600); err == nil {
		_ = unix.Dup3(log, unix.Stderr, 0) // for what systemd-run says
	}
	err = unix.Exec(argv[0], argv, append(env, managedVariable+"=1"))
	return fault.Wrap(fault.Engine, err, "start the shim in a cgroup of the user manager of systemd")
}
