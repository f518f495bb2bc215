package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// conversation is a child that answers each line with a line.
type conversation struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// converse starts the child and waits for the line that says it is ready.
func converse(c command) (*conversation, error) {
	cmd := exec.Command(c.args[0], c.args[1:]...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is for this program, which ends the child
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.ns.do(cmd.Start); err != nil {
		return nil, err
	}
	child := &conversation{cmd: cmd, in: in, out: bufio.NewReader(out)}
	if said, err := child.answer(); err != nil || said != "ready" {
		return nil, errors.Join(fmt.Errorf("%s said %q", c.args[0], said), err, child.close())
	}
	return child, nil
}

// ask sends a line and gives the answer.
func (c *conversation) ask(line string) (string, error) {
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		return "", err
	}
	return c.answer()
}

func (c *conversation) answer() (string, error) {
	line, err := c.out.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// close closes the child's stdin, which ends it, and waits for it.
func (c *conversation) close() error {
	hung := time.AfterFunc(timeout, func() { _ = c.cmd.Process.Kill() })
	defer hung.Stop()
	return errors.Join(c.in.Close(), c.cmd.Wait())
}
