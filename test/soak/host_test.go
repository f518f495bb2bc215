package soak_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core/fault"
	"sandbox/test/programs"
)

// hosts is how many programs in C make boxes in their own process at once.
const hosts = 1

// running are the host programs that run.
type running struct {
	mu   sync.Mutex
	pids map[int]bool
}

func (r *running) add(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pids == nil {
		r.pids = map[int]bool{}
	}
	r.pids[pid] = true
}

// done waits for a program, so that its number is not another's while it is known.
func (r *running) done(cmd *exec.Cmd) error {
	var state syscall.WaitStatus
	_, _ = syscall.Wait4(cmd.Process.Pid, &state, syscall.WNOWAIT, nil)
	r.mu.Lock()
	delete(r.pids, cmd.Process.Pid)
	r.mu.Unlock()
	return cmd.Wait()
}

// compileHost builds the host program.
func (s *soak) compileHost() string {
	program, tree := filepath.Join(s.dir, "host"), programs.Tree()
	run(s.t, "cc", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-I", tree+"/include", "-o", program, "testdata/host.c",
		"-L", programs.Dir(), "-lsandbox", "-Wl,-rpath,"+programs.Dir())
	return program
}

// host runs host programs, one after another as they are killed, until stop is
// closed. Their boxes go with them.
func (s *soak) host(prefix string, stop <-chan struct{}) {
	for n := 0; s.ctx.Err() == nil; n++ {
		name := fmt.Sprintf("%s-%d", prefix, n)
		killed, err := s.hostOnce(name, stop)
		if err != nil {
			s.t.Error("a host program: ", err)
			return
		}
		s.gone(name)
		if !killed {
			return
		}
	}
}

// hostOnce runs one until it is killed or stop is closed.
func (s *soak) hostOnce(name string, stop <-chan struct{}) (killed bool, err error) {
	cmd := exec.Command(s.program, s.home, name)
	cmd.Env = s.env()
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	in, err := cmd.StdinPipe()
	if err != nil {
		return false, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	s.running.add(cmd.Process.Pid)
	ended := make(chan struct{})
	go func() {
		select {
		case <-stop:
			_ = in.Close()
		case <-ended:
		}
	}()
	s.judge(name, out)
	err = s.running.done(cmd)
	close(ended)
	if state := cmd.ProcessState.Sys().(syscall.WaitStatus); state.Signaled() && state.Signal() == syscall.SIGKILL {
		return true, nil
	}
	return false, err
}

// judge reads the failures that a host program tells.
func (s *soak) judge(name string, out io.Reader) {
	w := s.newWorker(name)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		words := strings.SplitN(lines.Text(), " ", 5)
		if len(words) < 5 {
			continue // cut by the kill
		}
		o := op(words[0])
		code, err := strconv.Atoi(words[1])
		began, _ := strconv.ParseInt(words[2], 10, 64)
		if err != nil {
			continue // the message before goes on
		}
		kind := slices.IndexFunc(fault.Table(), func(row fault.Row) bool { return row.C == code })
		if s.may(o, time.UnixMilli(began), fault.Kind(kind)) {
			s.refuse("host's "+o, fault.Kind(kind))
			continue
		}
		s.unexpected.Add(1)
		_ = w.fail("host's "+o, words[3], fmt.Errorf("code %d: %s", code, words[4]))
	}
}

// gone waits until the boxes of a host program are gone: they end with it.
func (s *soak) gone(name string) {
	w := s.newWorker(name)
	for {
		var all []api.Box
		err := w.insist(read, name, func() (err error) {
			all, err = w.c.Boxes(w.ctx, client.Filter{})
			return err
		})
		its := slices.ContainsFunc(all, func(b api.Box) bool { return b.Name != nil && strings.HasPrefix(*b.Name, name+"-") })
		if err != nil || !its {
			return
		}
		if !s.pause(nil) {
			s.t.Errorf("boxes of %s are left", name)
			return
		}
	}
}
