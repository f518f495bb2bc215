package image

import "io"

// roomStep is after how many bytes it is looked again whether the disk has room: a look
// costs one system call, and so much is written before another one may see it.
const roomStep = 16 << 20

// room sees to it that what is written to the store leaves the space free that is to stay
// free on the home's disk.
type room struct {
	check func() error // nil: nothing has to stay free
	n     int64        // bytes that were written
}

// take counts n bytes more. Errors: Storage.
func (r *room) take(n int) error {
	before := r.n
	r.n += int64(n)
	if r.check == nil || r.n/roomStep == before/roomStep {
		return nil
	}
	return r.check()
}

// room refuses to begin what fills a disk that has no room. Errors: Storage.
func (s *Store) room() error {
	if s.c.Room == nil {
		return nil
	}
	return s.c.Room()
}

// roomReader reads what is written to the store.
type roomReader struct {
	r    io.Reader
	room room
}

func (r *roomReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if full := r.room.take(n); full != nil {
		return n, full
	}
	return n, err
}
