package guest

import (
	"fmt"

	"sandbox/core/engine/wire"
)

// Disk keeps what the box of a pod has written beyond its process 1.
type Disk struct {
	// Restore puts back what was saved. It is called once, while nothing runs in the box.
	Restore func() error
	// Save saves all that is to be kept. It is called when nothing runs in the box any more,
	// and again if it has failed and the box went on.
	Save func() error
}

// errDisk is a failure of the pod's disk.
type errDisk struct{ error }

func (e errDisk) Unwrap() error { return e.error }

// restore puts the disk back, and then lets the box begin. If that fails, the box ends.
func (p *Pod) restore() {
	d := p.g.pod
	if d.disk != nil {
		if err := d.disk.Restore(); err != nil {
			d.damaged = errDisk{err}
			p.stopped <- wire.EndedUnrestored + err.Error()
		}
	}
	close(d.restored)
}

// awaitDisk waits until the disk is as the box had it.
func (p *pod) awaitDisk() error {
	<-p.restored
	return p.damaged
}

// keeps reports whether the box has a disk to save.
func (g *guest) keeps() bool { return g.pod != nil && g.pod.disk != nil }

// save saves the disk of a box in which nothing runs any more. One that was never claimed
// has changed nothing.
func (g *guest) save() error {
	if !g.keeps() {
		return nil
	}
	g.mu.Lock()
	claimed := g.pod.claimed != nil
	g.mu.Unlock()
	if !claimed {
		return nil
	}
	if err := g.pod.disk.Save(); err != nil {
		return errDisk{fmt.Errorf("the box goes on, as its disk can't be saved: %w", err)}
	}
	return nil
}

// resume has a box go on that was being ended.
func (g *guest) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopping = false
}
