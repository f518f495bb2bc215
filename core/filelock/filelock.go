// Package filelock locks files against other processes, and against others in
// the same process, with flock(2).
//
// A lock ends when it is closed or its process ends. A child that is being
// started has copies of all descriptors, also of locks, until it runs its
// program. Two things follow. [File.Close] unlocks before it closes: closing
// alone would leave the lock with such a child for a moment. And the lock of a
// process that was killed may seem held for a moment longer: where that must
// not be taken for a process that lives, wait with [Exclusive] and a context
// that ends soon, and do not [Try].
//
// Whoever holds a lock may remove its file. Whoever waited for it then locks
// the file that is made anew.
package filelock

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// File is an open file that holds a lock.
//
// To hand the lock to a child process, pass it the embedded *os.File and then
// close that one, not the File: the lock ends with the child.
type File struct{ *os.File }

// ErrHeld says that another process holds the lock.
var ErrHeld = errors.New("another process holds the lock")

// Exclusive waits until nobody else has a lock of the file path. It makes the
// file, readable for its owner alone, if there is none. Errors: those of
// open(2) and flock(2), and Canceled or Timeout when ctx ends first. What the
// process needs for its waits is bounded: see line.
func Exclusive(ctx context.Context, path string) (*File, error) {
	return wait(ctx, path, unix.LOCK_EX)
}

// Shared waits until nobody else has an exclusive lock of the file path. Else
// it is like Exclusive.
func Shared(ctx context.Context, path string) (*File, error) {
	return wait(ctx, path, unix.LOCK_SH)
}

// Try is Exclusive that does not wait. Errors: ErrHeld, and those of open(2)
// and flock(2).
func Try(path string) (*File, error) {
	return take(func() error { return nil }, path, unix.LOCK_EX|unix.LOCK_NB)
}

// Close unlocks and closes the file.
func (f *File) Close() error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_UN)
	return errors.Join(err, f.File.Close())
}

func wait(ctx context.Context, path string, how int) (*File, error) {
	f, err := take(func() error { return ended(ctx) }, path, how|unix.LOCK_NB)
	if !errors.Is(err, ErrHeld) {
		return f, err
	}
	return line{path, how}.wait(ctx)
}

// ended returns the failure of a wait whose context has ended, else nil.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fault.Of(ctx.Err())
}

// take locks the file that path names at the time it has the lock: the last
// holder may have removed the one that it named before. Once stop returns an
// error, take makes no file any more and returns that error.
func take(stop func() error, path string, how int) (*File, error) {
	for {
		if err := stop(); err != nil {
			return nil, err
		}
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return nil, err
		}
		err = flock(f, how)
		if err == nil && named(f, path) {
			return &File{f}, nil
		}
		_ = (&File{f}).Close()
		if err != nil {
			return nil, err
		}
	}
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrHeld
		case !errors.Is(err, unix.EINTR):
			return os.NewSyscallError("flock", err)
		}
	}
}

// named tells whether path still names f.
func named(f *os.File, path string) bool {
	opened, err1 := f.Stat()
	there, err2 := os.Lstat(path)
	return err1 == nil && err2 == nil && os.SameFile(opened, there)
}
