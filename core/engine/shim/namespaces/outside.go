package namespaces

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/filelock"
	"sandbox/core/sockets"
)

// outsideReadyFD is where the process outside tells its starter that it serves, or why not.
const outsideReadyFD = 3

// lingering is how long the process outside stays without a shim and without boxes.
const lingering = 5 * time.Second

// outside is the process that stays in the host's namespaces for the shim of a home.
type outside struct {
	home   string
	log    *slog.Logger
	spaces *spaces
	uplink uplink

	mu      sync.Mutex
	clients int
	asked   int           // how often a shim has asked for the namespaces
	over    bool          // the last shim has said that it is not needed any more
	changed chan struct{} // gets a value when the number of clients has changed
}

// Outside is the body of that process. It returns once neither a shim nor a box of the
// home needs it any more.
func Outside(home string) error {
	ready := os.NewFile(outsideReadyFD, "ready")
	unix.CloseOnExec(outsideReadyFD)
	err := runOutside(home, ready)
	if err != nil { // the starter reads it only if it came before the process was ready
		e := fault.Of(err)
		_ = json.NewEncoder(ready).Encode(wire.Error{Kind: e.Kind, Message: e.Message})
	}
	return err
}

func runOutside(home string, ready *os.File) error {
	// An earlier one may be about to end.
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	lock, err := filelock.Exclusive(ctx, filepath.Join(home, "engine", wire.OutsideLock))
	if err != nil {
		return fault.Wrap(fault.Engine, err, "wait for the process that kept the namespaces of the home")
	}
	defer lock.Close()
	o := &outside{home: home, log: slog.New(slog.NewTextHandler(os.Stderr, nil)), changed: make(chan struct{}, 1)}
	leave := enterGroup(home)
	defer leave()
	if o.spaces, err = openSpaces(home); err != nil {
		return err
	}
	o.uplink = uplink{spaces: o.spaces, log: o.log, closing: make(chan struct{})}
	dir, err := sockets.OpenDir(filepath.Join(home, "engine"))
	if err != nil {
		return fault.Disk(err, "open the home")
	}
	defer dir.Close()
	fd, err := sockets.Replace(dir, wire.OutsideSocket)
	if err != nil {
		return fault.Disk(err, "serve the shim")
	}
	l, err := wire.NewListener(fd)
	if err != nil {
		return err
	}
	_, _ = ready.WriteString(wire.Ready)
	_ = ready.Close()
	go o.accept(l)
	o.awaitEnd()
	_ = unix.Unlinkat(int(dir.Fd()), wire.OutsideSocket, 0)
	_ = l.Close()
	o.uplink.close()
	o.spaces.end()
	return nil
}

func (o *outside) accept(l *wire.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		asked := o.count(1)
		go func() {
			defer o.count(-1)
			defer conn.Close()
			o.serve(conn, asked)
		}()
	}
}

// count counts clients, and returns how often a shim has asked for the namespaces by now.
func (o *outside) count(n int) (asked int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clients += n
	select {
	case o.changed <- struct{}{}:
	default:
	}
	return o.asked
}

// expect notes that a shim has asked for the namespaces, and will connect once it is in them.
func (o *outside) expect() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked++
	o.over = false
}

// leave notes that a shim has left in order, after which nobody has to wait, unless another
// one has asked for the namespaces since this one came: that connects when this one has
// ended, and needs them. asked is how often one had asked when this one came.
func (o *outside) leave(asked int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = asked == o.asked
}

// left tells whether a shim has left in order and nobody has come since.
func (o *outside) left() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.clients == 0 && o.over
}

func (o *outside) idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.clients == 0
}

// awaitEnd waits until there was neither a shim nor a box for a while. Boxes outlive a
// shim that is killed.
func (o *outside) awaitEnd() {
	for {
		var over <-chan time.Time
		if o.left() {
			return
		}
		if o.idle() {
			over = time.After(lingering)
		}
		select {
		case <-o.changed:
		case <-over:
			if !o.awaitBoxes() {
				return
			}
		}
	}
}

// awaitBoxes waits for the end of the boxes that run, or for a shim. It tells whether it
// had to wait.
func (o *outside) awaitBoxes() bool {
	boxes, _, err := record.Open(o.home).List()
	if err != nil {
		o.log.Error("list the boxes of the home", "error", err)
		return false
	}
	for _, b := range boxes {
		if b.Init.Ended() {
			continue
		}
		for o.idle() && !b.Init.EndsWithin(lingering) {
		}
		return true
	}
	return false
}
