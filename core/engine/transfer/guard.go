package transfer

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// guard keeps SIGTERM, which a box that stops sends to all its processes, from ending
// this one before it has removed a temporary file.
type guard struct {
	came chan os.Signal
	done chan struct{} // closed when nobody waits for the signal any more; nil before begin
}

// newGuard keeps SIGTERM off until [guard.begin] says what to do then. It comes before
// the file is made.
func newGuard() *guard {
	g := &guard{came: make(chan os.Signal, 1)}
	signal.Notify(g.came, unix.SIGTERM)
	return g
}

// begin has SIGTERM remove the file, which is there by now, and end the process.
func (g *guard) begin(remove func()) {
	g.done = make(chan struct{})
	go func() {
		defer close(g.done)
		if _, open := <-g.came; open {
			remove()
			os.Exit(1)
		}
	}()
}

// end ends the guard. After begin it does not return if SIGTERM has come: the end of the
// process would leave the next file that is made.
func (g *guard) end() {
	signal.Stop(g.came)
	close(g.came)
	if g.done != nil {
		<-g.done
	}
}
