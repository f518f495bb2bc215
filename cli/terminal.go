package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"sandbox/backend"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// terminal is the terminal that we run on, if we and the command have one.
type terminal struct {
	screen  *os.File // nil if we have none, or the command has none
	raw     bool     // every key goes to the command
	restore func()   // puts our terminal back into its former mode; may be called twice
}

// checkTerminal refuses a command with a terminal whose input would not come from
// one: no key would ever end it. Errors: InvalidArgument.
func (a *app) checkTerminal(o options.Exec) error {
	if o.TTY && o.Stdin && asTerminal(a.In) == nil {
		return fault.New(fault.InvalidArgument, "the input device is not a TTY: leave out -t")
	}
	return nil
}

// openTerminal puts our terminal into raw mode if the command has a terminal and
// gets our input, so that it gets every key. Otherwise the mode stays: control-C
// ends us then, and we end the command.
func (a *app) openTerminal(o options.Exec) (*terminal, error) {
	t := &terminal{restore: func() {}}
	if !o.TTY {
		return t, nil
	}
	keys := asTerminal(a.In)
	if t.screen = keys; keys == nil {
		t.screen = asTerminal(a.Out)
	}
	if keys == nil || !o.Stdin {
		return t, nil
	}
	mode, err := term.MakeRaw(int(keys.Fd()))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "switch the terminal to raw mode")
	}
	t.raw = true
	t.restore = sync.OnceFunc(func() { _ = term.Restore(int(keys.Fd()), mode) })
	return t, nil
}

// asTerminal returns stream if it is a terminal, or nil.
func asTerminal(stream any) *os.File {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return f
}

// describe makes the command's terminal as large as ours and of the same type.
func (t *terminal) describe(o *options.Exec) {
	if t.screen == nil {
		return
	}
	if cols, rows, ok := t.size(); ok {
		o.Cols, o.Rows = cols, rows
	}
	if kind := os.Getenv("TERM"); kind != "" && o.Env["TERM"] == "" {
		env := map[string]string{"TERM": kind}
		for key, value := range o.Env {
			env[key] = value
		}
		o.Env = env
	}
}

// size returns our terminal's size. Serial lines, and terminals of programs that
// set none, have 0 x 0: that is no size, and the command's stays what it is.
func (t *terminal) size() (cols, rows int, ok bool) {
	cols, rows, err := term.GetSize(int(t.screen.Fd()))
	return cols, rows, err == nil && cols > 0 && rows > 0
}

// follow passes each new size of our terminal to the command until stop is called.
// With redraw the size changes at once, which has programs draw their screen anew.
func (t *terminal) follow(ctx context.Context, e backend.Command, redraw bool) (stop func()) {
	if t.screen == nil {
		return func() {}
	}
	if cols, rows, ok := t.size(); ok && redraw {
		_ = e.Resize(ctx, cols, rows+1)
	}
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range changed {
			if cols, rows, ok := t.size(); ok {
				_ = e.Resize(ctx, cols, rows) // fails only when the command has ended
			}
		}
	}()
	changed <- unix.SIGWINCH // a change since the command was started
	return func() {
		signal.Stop(changed)
		close(changed)
		<-done
	}
}
