package image

import "io"

const (
	aheadBuffers = 4
	aheadBuffer  = 256 << 10
)

// ahead reads from a reader in a goroutine of its own, some buffers ahead, so
// that unpacking one piece and making use of the last one go on at once.
type ahead struct {
	full  chan piece
	empty chan []byte
	stop  chan struct{}
	done  chan struct{}
	now   piece
	rest  []byte // of now
}

type piece struct {
	buf []byte
	n   int
	err error
}

func newAhead(r io.Reader) *ahead {
	a := &ahead{
		full: make(chan piece, aheadBuffers), empty: make(chan []byte, aheadBuffers),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	for range aheadBuffers {
		a.empty <- make([]byte, aheadBuffer)
	}
	go a.run(r)
	return a
}

func (a *ahead) run(r io.Reader) {
	defer close(a.done)
	for {
		select {
		case <-a.stop:
			return
		case buf := <-a.empty:
			p := piece{buf: buf}
			for p.n < len(buf) && p.err == nil {
				var n int
				n, p.err = r.Read(buf[p.n:])
				p.n += n
			}
			a.full <- p // never blocks: there are no more buffers than places
			if p.err != nil {
				return
			}
		}
	}
}

// Read gives what was read, and at its end the reader's error.
func (a *ahead) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.now.err != nil {
			return 0, a.now.err
		}
		if a.now.buf != nil {
			a.empty <- a.now.buf
		}
		a.now = <-a.full
		a.rest = a.now.buf[:a.now.n]
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// close ends the goroutine, once its reader returns.
func (a *ahead) close() {
	close(a.stop)
	<-a.done
}
