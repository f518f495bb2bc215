// Package kubelet starts a program as the kubelet and its runtime start process 1 of a
// container: in namespaces of its own, with few capabilities and no way to more. Its tests
// need no cluster then.
package kubelet

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// stage is the variable of the environment that makes a test program the kubelet.
const stage = "SANDBOX_POD_KUBELET"

// Main takes over the process if it was started to be a container. TestMain calls it first.
func Main() {
	if os.Getenv(stage) == "" {
		return
	}
	if err := become(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kubelet:", err)
		os.Exit(1)
	}
}

// become mounts what a container has mounted, gives up what it has not, and executes its
// program.
func become(command []string) error {
	runtime.LockOSThread()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	for _, m := range [][3]string{{"proc", "/proc", ""}, {"devpts", "/dev/pts", "newinstance,ptmxmode=0666,mode=0620,gid=5"}} {
		if err := unix.Mount(m[0], m[1], m[0], unix.MS_NOSUID|unix.MS_NOEXEC, m[2]); err != nil {
			return fmt.Errorf("mount %s: %w", m[1], err)
		}
	}
	if err := confine(); err != nil {
		return err
	}
	if err := os.Unsetenv(stage); err != nil {
		return err
	}
	return syscall.Exec(command[0], command, os.Environ())
}

// capabilities are those that the container of a box has in Kubernetes.
const capabilities = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID |
	1<<unix.CAP_KILL | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_NET_BIND_SERVICE | 1<<unix.CAP_SYS_CHROOT

func confine() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if capabilities&(1<<c) == 0 {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
				return err
			}
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: capabilities, Permitted: capabilities}}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// Container is a program that was started.
type Container struct {
	*exec.Cmd
	Log    *bufio.Reader // what it writes to stdout
	Output bytes.Buffer  // what it wrote to stderr; to be read when it has ended
}

// Start starts a command, with files as its descriptors from 3 on, and kills it when the
// test has ended.
func Start(t *testing.T, command, env []string, files ...*os.File) *Container {
	t.Helper()
	c := &Container{Cmd: exec.CommandContext(context.Background(), "/proc/self/exe", command...)}
	c.Env, c.Dir, c.Stderr, c.ExtraFiles = append(env, stage+"=1"), "/usr", &c.Output, files
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS, Setsid: true}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Log = bufio.NewReader(stdout)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.ProcessState == nil {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
		if t.Failed() {
			t.Logf("process 1: %s", c.Output.String())
		}
	})
	return c
}
