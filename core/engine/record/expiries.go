package record

import (
	"errors"
	"io/fs"
	"path/filepath"

	"sandbox/core"
	"sandbox/core/store"
)

// Expiries is where the shim of a home counts the boxes whose time has come. Nothing
// waits for the disk: a power cut may take the last counts, or all of them.
type Expiries struct{ dir store.Dir[core.Expiries] }

const expiriesKey = "expiries"

// OpenExpiries returns the counts of a home.
func OpenExpiries(home string) Expiries {
	return Expiries{store.Dir[core.Expiries]{Path: filepath.Join(home, "engine")}}
}

// Get returns the counts. Without any, or when they are damaged, all are 0. Errors:
// Storage.
func (e Expiries) Get() (core.Expiries, error) {
	counts, err := e.dir.Get(expiriesKey)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrDamaged) {
		return core.Expiries{}, nil
	}
	return counts, err
}

// Put writes the counts. Errors: Storage.
func (e Expiries) Put(counts core.Expiries) error { return e.dir.Put(expiriesKey, counts, false) }
