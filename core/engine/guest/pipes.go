package guest

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
)

// childFiles are the command's ends of its pipes or terminal, which are its
// stdin, stdout and stderr. stdin is /dev/null if the command has no input.
type childFiles struct {
	in, out, err int
	own          []int // the descriptors to close once the command has them
}

func (c childFiles) fds() []uintptr {
	return []uintptr{uintptr(c.in), uintptr(c.out), uintptr(c.err)}
}

func (c childFiles) close() {
	for _, fd := range c.own {
		_ = unix.Close(fd)
	}
}

// say writes to the command's stderr why it could not be started.
func (c childFiles) say(why *startFailure) {
	_, _ = unix.Write(c.err, []byte("sandbox: "+why.message+"\n"))
}

// open makes the pipes or the terminal of a command and returns the command's
// ends.
func (e *exec) open(g *guest, r wire.Start) (childFiles, error) {
	e.files = files{out: -1, err: -1, in: -1, tty: r.TTY, keepIn: r.KeepStdin}
	c := childFiles{in: int(g.null.Fd())}
	var err error
	if r.TTY {
		err = e.openTerminal(g, r, &c)
	} else {
		err = e.openPipes(r, &c)
	}
	if err != nil {
		c.close()
		e.discard()
	}
	return c, err
}

func (e *exec) openPipes(r wire.Start, c *childFiles) (err error) {
	if e.files.out, c.out, err = outputPipe(c); err != nil {
		return err
	}
	if e.files.err, c.err, err = outputPipe(c); err != nil {
		return err
	}
	if !r.Stdin {
		return nil
	}
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	c.in, e.files.in = p[0], p[1]
	c.own = append(c.own, p[0])
	return nil
}

// outputPipe makes a pipe for a command's output. Its read end does not block:
// the reader polls it, and init may have to drop output that nobody reads. Its
// write end, which the command gets, blocks.
func outputPipe(c *childFiles) (read, write int, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return -1, -1, err
	}
	c.own = append(c.own, p[1])
	return p[0], p[1], unix.SetNonblock(p[0], true)
}

// errTerminals is the failure of a start with a terminal when the box has none
// left.
var errTerminals = errors.New("the box has no terminal left: end the commands that hold one, or run this one without")

// openTerminal makes a terminal. It uses the directory /dev/pts as it was opened
// before the box ran anything, since its name may lead elsewhere by now.
func (e *exec) openTerminal(g *guest, r wire.Start, c *childFiles) error {
	master, err := unix.Openat(g.pts, "ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOSPC) {
		return errTerminals
	}
	if err != nil {
		return fmt.Errorf("open a terminal: %w", err)
	}
	e.files.out = master
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return fmt.Errorf("unlock the terminal: %w", err)
	}
	slave, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return fmt.Errorf("open the terminal's other side: %w", errno)
	}
	c.in, c.out, c.err = int(slave), int(slave), int(slave)
	c.own = append(c.own, int(slave))
	if err := unix.IoctlSetWinsize(master, unix.TIOCSWINSZ, winsize(r.Cols, r.Rows)); err != nil {
		return fmt.Errorf("set the terminal's size: %w", err)
	}
	return nil
}

// winsize returns a size of a terminal as the kernel takes it.
func winsize(cols, rows int) *unix.Winsize {
	return &unix.Winsize{Col: uint16(min(max(cols, 0), math.MaxUint16)), Row: uint16(min(max(rows, 0), math.MaxUint16))}
}

// fdPath returns the path of a descriptor in /proc. It can be trusted: /proc is
// the box's own, and nobody in the box can mount over it.
func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
