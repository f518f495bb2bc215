package shim

import (
	"errors"
	"os"
	"time"

	"sandbox/core/engine/process"
)

// watchOwner watches a process, and removes the boxes that it owns once it has
// ended. It returns at once, and does nothing if the process is watched already.
func (k *keeper) watchOwner(owner process.Identity) {
	k.mu.Lock()
	watched := k.owners[owner]
	k.owners[owner] = true
	k.mu.Unlock()
	if watched {
		return
	}
	go func() {
		awaitProcess(owner)
		k.mu.Lock()
		delete(k.owners, owner)
		orphans := map[string]string{} // the slots, by the boxes' ids
		for id, b := range k.boxes {
			if rec := b.record(); rec.Owner == owner {
				orphans[id] = rec.Slot()
			}
		}
		k.mu.Unlock()
		for id, slot := range orphans {
			k.insist(id, slot, func() error { return k.remove(id, true) })
		}
	}()
}

// awaitProcess waits for the end of a process. While the process can't be
// watched for lack of descriptors, awaitProcess tries again every second: the
// kernel does not tell anybody when a descriptor is free again.
func awaitProcess(p process.Identity) {
	for {
		h, err := process.Open(p)
		if err == nil {
			_ = h.Wait()
			_ = h.Close()
			return
		}
		if errors.Is(err, os.ErrProcessDone) {
			return
		}
		time.Sleep(time.Second)
	}
}
