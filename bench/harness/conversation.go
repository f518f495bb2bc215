package harness

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

// Conversation is a child that answers each line that it is sent with a line.
type Conversation struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// Converse starts the child and waits for the line that says it is ready.
func Converse(c Command) (*Conversation, error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
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
	if err := c.NS.Do(cmd.Start); err != nil {
		return nil, err
	}
	child := &Conversation{cmd: cmd, in: in, out: bufio.NewReader(out)}
	if said, err := child.answer(); err != nil || said != "ready" {
		return nil, errors.Join(fmt.Errorf("%s said %q", c.Args[0], said), err, child.Close())
	}
	return child, nil
}

// Ask sends a line and returns the answer.
func (c *Conversation) Ask(line string) (string, error) {
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		return "", err
	}
	return c.answer()
}

func (c *Conversation) answer() (string, error) {
	line, err := c.out.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// Close closes the child's stdin, which ends it, and waits for it.
func (c *Conversation) Close() error {
	hung := time.AfterFunc(Timeout, func() { _ = c.cmd.Process.Kill() })
	defer hung.Stop()
	return errors.Join(c.in.Close(), c.cmd.Wait())
}
