package link

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// TestConsumed checks that bytes that were read are counted at once: a caller that
// detaches between the write of bytes and the note of it would leave them to the next.
func TestConsumed(t *testing.T) {
	t.Parallel()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	s := newSession(nil, nil)
	st, err := newStream(p[1], note{what: toHost}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer st.close()

	const pieces = 20_000
	piece := make([]byte, 512)
	s.workers.Go(func() {
		for range pieces {
			s.accept(st, piece)
		}
	})
	defer s.workers.Wait()
	defer func() { _ = unix.Close(p[0]) }() // ends a write that waits
	got, buffer := int64(0), make([]byte, 1<<16)
	for got < pieces*int64(len(piece)) {
		s.mu.Lock()
		n, err := unix.Read(p[0], buffer)
		got += int64(max(n, 0))
		consumed := st.consumed(true)
		s.mu.Unlock()
		if err != nil && !errors.Is(err, unix.EAGAIN) {
			t.Fatal(err)
		}
		if consumed < got {
			t.Errorf("%d bytes were read, and %d are counted", got, consumed)
			return
		}
	}
}
