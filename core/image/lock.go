package image

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// locked is a file that holds a lock.
type locked struct{ *os.File }

// Close lets go of the lock. To close the file is not enough: a child that is
// being started has it too, until it runs its program.
func (l *locked) Close() error {
	_ = unix.Flock(int(l.Fd()), unix.LOCK_UN)
	return l.File.Close()
}

// lock waits for the lock of the file path, which it makes. The lock ends with
// the file being closed, or the process.
//
// flock(2) can't be told to give up: when ctx ends first, a goroutine waits on
// until the holder lets go, and then lets go too.
func lock(ctx context.Context, path string) (*locked, error) {
	if f, err := tryLock(path); f != nil || err != nil {
		return f, err
	}
	type result struct {
		f   *locked
		err error
	}
	got := make(chan result)
	go func() {
		f, err := lockFile(ctx, path, unix.LOCK_EX)
		select {
		case got <- result{f, err}:
		case <-ctx.Done():
			if f != nil {
				_ = f.Close()
			}
		}
	}()
	select {
	case r := <-got:
		return r.f, r.err
	case <-ctx.Done():
		return nil, fault.Of(ctx.Err())
	}
}

// tryLock is lock that gives nil when another holds it.
func tryLock(path string) (*locked, error) {
	f, err := lockFile(context.Background(), path, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil
	}
	return f, err
}

// lockFile locks the file that path names at the time it has the lock: the
// last holder may have removed the one that it named before. Once ctx has ended
// it makes no file any more.
func lockFile(ctx context.Context, path string, how int) (*locked, error) {
	for {
		if ctx.Err() != nil {
			return nil, fault.Of(ctx.Err())
		}
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fault.Disk(err, "lock the image store")
		}
		err = flock(f, how)
		l := &locked{f}
		if err == nil && sameFile(f, path) {
			return l, nil
		}
		_ = l.Close()
		if err != nil {
			return nil, fault.Disk(err, "lock the image store")
		}
	}
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func sameFile(f *os.File, path string) bool {
	opened, err1 := f.Stat()
	named, err2 := os.Stat(path)
	return err1 == nil && err2 == nil && os.SameFile(opened, named)
}
