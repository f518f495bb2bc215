package httpd

import (
	"context"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core"
	"sandbox/core/fault"
)

// consoleOf lets a client act on a command. find gives it while it runs; what
// comes for one that has ended is dropped: its exit is on its way.
func consoleOf(ctx context.Context, tty, open bool, find func() (*core.Exec, error)) console {
	on := func(do func(*core.Exec) error) error {
		command, err := find()
		if err == nil {
			err = do(command)
		}
		if fault.Is(err, fault.InvalidState) {
			return nil
		}
		return err
	}
	return console{
		input: func(p []byte) error {
			if !open {
				return fault.New(fault.InvalidArgument, "the command takes no input: start it with stdin_open or tty")
			}
			return on(func(x *core.Exec) error { _, _ = x.Stdin().Write(p); return nil }) // it may have closed its end
		},
		resize: func(cols, rows int) error {
			if !tty {
				return fault.New(fault.InvalidArgument, "the command has no terminal to resize")
			}
			return on(func(x *core.Exec) error { return x.Resize(ctx, cols, rows) })
		},
		signal: func(name string) error {
			sig := unix.SignalNum("SIG" + strings.TrimPrefix(name, "SIG"))
			if sig == 0 {
				return invalid("signal", "value", "must be a signal's name, such as INT")
			}
			return on(func(x *core.Exec) error { return send(ctx, x, tty, sig) })
		},
		eof: func() error {
			if tty {
				return on(func(x *core.Exec) error { _, _ = x.Stdin().WriteString(endOfInput); return nil })
			}
			return on(func(x *core.Exec) error { return x.CloseStdin(ctx) })
		},
	}
}

// send sends a signal to a command. Those that a key of the terminal sends go
// to what is in its foreground, as by the key.
func send(ctx context.Context, x *core.Exec, tty bool, sig unix.Signal) error {
	if tty && (sig == unix.SIGINT || sig == unix.SIGQUIT || sig == unix.SIGTSTP) {
		err := unix.IoctlSetInt(int(x.Stdin().Fd()), unix.TIOCSIG, int(sig))
		return fault.Wrap(fault.InvalidState, err, "signal the terminal's foreground")
	}
	return x.Signal(ctx, int(sig))
}

// interrupt ends a write to a command's input that waits, so that its
// goroutine ends; renew lets the next one write.
func interrupt(stdin *os.File) {
	if stdin != nil {
		_ = stdin.SetWriteDeadline(time.Unix(1, 0))
	}
}

func renew(stdin *os.File) {
	if stdin != nil {
		_ = stdin.SetWriteDeadline(time.Time{})
	}
}
