// Package store keeps records on disk, one JSON file each.
//
// A record is written completely to a temporary file, which is then renamed
// over the old one. A reader, or a process that starts after kill -9, therefore
// sees the old record or the new one, and never a part of either. After a power
// cut that holds only for records that were put durably; other records may be
// lost or empty, and [Dir.Get] reports an empty one as damaged. A writer that
// is killed leaves a temporary file behind, which readers ignore and
// [Dir.Sweep] removes.
package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sandbox/core/fault"
)

const (
	suffix    = ".json"
	temporary = ".tmp-" // no key begins with a dot
	maxKey    = 200     // together with suffix and the temporary name less than NAME_MAX
)

// AsideSuffix is the end of the names of damaged records that were set aside.
const AsideSuffix = ".damaged"

// ErrDamaged is the cause of the failure to read a record whose file does not
// hold a record.
var ErrDamaged = errors.New("the file is not a record")

// Dir is a directory of records of one type. The zero value with a Path is
// ready for use, and Put makes the directory. A Dir is safe for concurrent use,
// also by several processes; of two Puts with the same key, the one that
// renames its file last wins.
type Dir[T any] struct {
	Path string
}

// Put writes v as the record of key. If durable is true, the record survives a
// power cut. Errors: Storage; InvalidArgument for a key that can't be a file
// name.
func (d Dir[T]) Put(key string, v T, durable bool) error {
	name, err := d.file(key)
	if err != nil {
		return err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "encode record %q", key)
	}
	if err := os.MkdirAll(d.Path, 0o700); err != nil {
		return fault.Disk(err, "make the directory of record %q", key)
	}
	return fault.Disk(replace(name, data, durable), "write record %q", key)
}

// Get returns the record of key. Errors: an unclassified one that is
// os.ErrNotExist, when there is no record; Storage, naming the file, when it
// can't be read or is damaged; InvalidArgument as in Put.
func (d Dir[T]) Get(key string) (T, error) {
	name, err := d.file(key)
	if err != nil {
		var none T
		return none, err
	}
	return read[T](name)
}

// Damaged is a record that exists and whose file does not hold a record.
type Damaged struct {
	Key   string
	At    time.Time // when its file was last written
	Empty bool      // as a power cut leaves one that was not put durably
	Err   error     // names the file
}

// Errors returns the failures of the damaged records, joined.
func Errors(damaged []Damaged) error {
	var errs []error
	for _, d := range damaged {
		errs = append(errs, d.Err)
	}
	return errors.Join(errs...)
}

// List returns all records, in the order of their keys. A damaged record does
// not hide the others: it is returned in the second list. Errors: Storage, or
// ResourceExhausted for example because there are too few descriptors, when a
// file that may hold a good record can't be read.
func (d Dir[T]) List() ([]T, []Damaged, error) {
	entries, err := os.ReadDir(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fault.Disk(err, "list records")
	}
	var all []T
	var damaged []Damaged
	for _, e := range entries {
		key, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || strings.HasPrefix(key, temporary) {
			continue
		}
		v, err := read[T](filepath.Join(d.Path, e.Name()))
		switch {
		case err == nil:
			all = append(all, v)
		case errors.Is(err, ErrDamaged):
			damaged = append(damaged, d.Damage(key, err))
		case !errors.Is(err, fs.ErrNotExist): // ErrNotExist: it was deleted since ReadDir
			return nil, nil, err
		}
	}
	return all, damaged, nil
}

// Damage returns what is known of the record of key, which can't be read because
// of err: an [ErrDamaged] that Get has returned.
func (d Dir[T]) Damage(key string, err error) Damaged {
	damaged := Damaged{Key: key, At: time.Now(), Err: err}
	if info, err := os.Lstat(filepath.Join(d.Path, key+suffix)); err == nil { // else it was deleted meanwhile
		damaged.At, damaged.Empty = info.ModTime(), info.Size() == 0
	}
	return damaged
}

// SetAside renames the file of a damaged record, and returns the new name. The
// renamed file no longer counts as a record and is left for a person to look
// at. Errors: Storage, InvalidArgument as in Put.
func (d Dir[T]) SetAside(key string) (string, error) {
	name, err := d.file(key)
	if err != nil {
		return "", err
	}
	aside := strings.TrimSuffix(name, suffix) + AsideSuffix
	return aside, fault.Disk(os.Rename(name, aside), "set damaged record %q aside", key)
}

// Delete removes the record of key. It is no error when there is none. Errors:
// Storage, InvalidArgument as in Put.
func (d Dir[T]) Delete(key string) error {
	name, err := d.file(key)
	if err != nil {
		return err
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Disk(err, "delete record %q", key)
	}
	return nil
}

// Sync makes all deletions so far survive a power cut. Errors: Storage.
func (d Dir[T]) Sync() error { return fault.Disk(syncDir(d.Path), "delete a record for good") }

// Sweep removes the temporary files that killed writers left behind. It must be
// called only while nobody else writes to the directory: it can't distinguish
// the file of a dead writer from that of a live one, whose Put would fail.
// Errors: Storage.
func (d Dir[T]) Sweep() error {
	left, err := filepath.Glob(filepath.Join(globQuote(d.Path), temporary+"*"))
	if err != nil {
		return fault.Wrap(fault.Internal, err, "sweep records")
	}
	for _, name := range left {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Disk(err, "sweep records")
		}
	}
	return nil
}

func (d Dir[T]) file(key string) (string, error) {
	if key == "" || key[0] == '.' || len(key) > maxKey || strings.ContainsFunc(key, notInKey) {
		return "", fault.New(fault.InvalidArgument, "record key %q: want 1 to %d letters, digits, '_', '-', '.', not '.' first", key, maxKey)
	}
	return filepath.Join(d.Path, key+suffix), nil
}

func notInKey(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	return !letter && (r < '0' || r > '9') && !strings.ContainsRune("_-.", r)
}

func read[T any](name string) (T, error) {
	var v T
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return v, fmt.Errorf("no record: %w", err)
	}
	if err != nil {
		return v, fault.Disk(err, "read record")
	}
	if err := json.Unmarshal(data, &v); err != nil {
		var none T
		return none, fault.Wrap(fault.Storage, fmt.Errorf("%w: %w", ErrDamaged, err), "record %s is damaged: repair or remove the file", name)
	}
	return v, nil
}

// replace replaces the content of the file name by data in one step.
func replace(name string, data []byte, durable bool) (err error) {
	dir := filepath.Dir(name)
	f, err := os.CreateTemp(dir, temporary)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err == nil && durable {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err == nil && durable {
		err = syncDir(dir)
	}
	return err
}

// syncDir makes the names in dir survive a power cut.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

func globQuote(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
