package namespaces

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/process"
	"sandbox/core/engine/rootless"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// spaces are the namespaces of a home, and the process that keeps them.
type spaces struct {
	home      string
	rest      process.Identity
	user, net *os.File
}

// openSpaces returns the namespaces that the home has, or new ones.
func openSpaces(home string) (*spaces, error) {
	s := &spaces{home: home}
	text, err := os.ReadFile(s.file())
	if err == nil && json.Unmarshal(text, &s.rest) == nil && !s.rest.Ended() {
		return s, s.open()
	}
	if err := s.make(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *spaces) file() string { return filepath.Join(s.home, "engine", wire.RestFile) }

func (s *spaces) open() (err error) {
	if s.user, err = os.Open(fmt.Sprintf("/proc/%d/ns/user", s.rest.PID)); err == nil {
		s.net, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", s.rest.PID))
	}
	return fault.Wrap(fault.Engine, err, "open the namespaces of the home")
}

// make makes the namespaces, with the ids of boxes mapped: all of them, or the own one
// alone, which needs nobody's leave.
func (s *spaces) make() error {
	rest := exec.Command("/proc/self/exe", "rest")
	rest.Args[0] = "sandbox-shim"
	rest.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET, Setsid: true}
	mapper, lacking := rootless.FindMapper()
	if lacking != nil {
		rest.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		rest.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	if err := rest.Start(); err != nil {
		return fault.Wrap(fault.Unsupported, err, "make a user namespace: see user.max_user_namespaces, and kernel.apparmor_restrict_unprivileged_userns on Ubuntu")
	}
	go func() { _ = rest.Wait() }()
	var err error
	if lacking == nil {
		err = mapper.Map(rest.Process.Pid)
	}
	if err == nil {
		s.rest, err = process.Of(rest.Process.Pid)
	}
	if err == nil {
		err = s.open()
	}
	if err == nil {
		err = s.note()
	}
	if err != nil {
		_ = rest.Process.Kill()
	}
	return err
}

// note writes which process keeps the namespaces.
func (s *spaces) note() error {
	text, err := json.Marshal(s.rest)
	if err == nil {
		err = os.WriteFile(s.file(), text, 0o600)
	}
	return fault.Disk(err, "note which process keeps the namespaces of the home")
}
