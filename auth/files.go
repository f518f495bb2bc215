package auth

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"sandbox/core/store"
)

// fileLag is how far the last-used times on disk may lag behind. To write one for each
// request would cost more than the request.
const fileLag = 10 * time.Second

// files keeps keys in a directory, one file each.
type files struct {
	*Store
	records store.Dir[Key]
}

// Open reads the keys of a directory, which is made with the first key. Only one process
// at a time may have it open: the daemon's lock of the home ensures it. A record
// that is damaged is set aside, and the log names it: its key is refused from
// now on, and all others work. log may be nil. Errors: Storage.
func Open(dir string, log *slog.Logger) (*Store, error) {
	s := newStore(fileLag)
	f := files{s, store.Dir[Key]{Path: dir}}
	s.keeper = f
	if err := f.records.Sweep(); err != nil {
		return nil, err
	}
	keys, damaged, err := f.records.List()
	if err != nil {
		return nil, err
	}
	for _, d := range damaged {
		file, err := f.records.SetAside(d.Key)
		if log != nil {
			log.Error("the damaged record of a key was set aside, and the key is refused", "key_id", d.Key, "file", file, "damage", d.Err, "error", err)
		}
	}
	for _, k := range keys {
		s.set(k)
	}
	return s, nil
}

func (f files) create(_ context.Context, k Key) error {
	if len(f.byID) >= maxKeys { // read without mu: byID changes only while changing is held
		return errTooMany()
	}
	if err := f.records.Put(k.ID, k, true); err != nil {
		return err
	}
	f.set(k)
	return nil
}

func (f files) delete(_ context.Context, id string) error {
	if f.byID[id] == nil {
		return errNoKey(id)
	}
	if err := f.records.Delete(id); err != nil {
		return err
	}
	f.drop(id)
	return f.records.Sync() // or a power cut would bring the key back
}

// used does not sync: a power cut may lose the times.
func (f files) used(_ context.Context, keys []Key) error {
	var errs []error
	for _, k := range keys {
		err := f.records.Put(k.ID, k, false)
		if err == nil {
			f.set(k)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (files) close() {}
