package link_test

import (
	"math"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy carries connections to an address, and cuts them.
type proxy struct {
	addr  string
	to    string
	plain bool // there is no handshake, and connections are cut at any place
	l     net.Listener
	tasks sync.WaitGroup

	cuts    atomic.Int64
	refuses atomic.Bool
	loses   atomic.Int64 // how many bytes a new connection carries to the box before it loses all that follow; 0 for any number

	mu    sync.Mutex
	conns map[net.Conn]bool
	left  map[string]*atomic.Int64 // how many bytes connections still carry
	after func() int               // how many bytes connections carry in all; nil for any number
}

func newProxy(t testing.TB, to string, plain bool) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String(), to: to, plain: plain, l: l, conns: map[net.Conn]bool{}, left: map[string]*atomic.Int64{}}
	p.tasks.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		p.tasks.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		if p.refuses.Load() {
			_ = c.Close()
			continue
		}
		p.tasks.Go(func() { p.carry(c) })
	}
}

func (p *proxy) carry(a net.Conn) {
	defer a.Close()
	b, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer b.Close()
	left := &atomic.Int64{}
	left.Store(math.MaxInt64)
	p.mu.Lock()
	p.conns[a], p.conns[b] = true, true
	p.left[a.RemoteAddr().String()] = left
	if p.plain && p.after != nil {
		left.Store(int64(p.after()))
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.conns, a)
		delete(p.conns, b)
		delete(p.left, a.RemoteAddr().String())
		p.mu.Unlock()
	}()
	done, gone := make(chan struct{}, 2), make(chan struct{})
	defer close(gone)
	toBox := a
	if n := p.loses.Load(); n > 0 {
		toBox = &lossy{a, n, gone}
	}
	for _, way := range [][2]net.Conn{{a, b}, {b, toBox}} {
		p.tasks.Go(func() {
			copyUntil(way[0], way[1], left)
			done <- struct{}{}
		})
	}
	<-done
	if left.Load() <= 0 {
		p.cuts.Add(1)
	}
}

// lossy is a connection from which a few bytes come, and no more until it is gone.
type lossy struct {
	net.Conn
	left int64
	gone <-chan struct{}
}

func (c *lossy) Read(p []byte) (int, error) {
	if c.left == 0 {
		<-c.gone
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// arm has a connection cut from now on, if connections are. It is told by its address at
// the side that dialed.
func (p *proxy) arm(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := p.left[addr]; left != nil && p.after != nil {
		left.Store(int64(p.after()))
	}
}

// copyUntil copies bytes until left have been copied.
func copyUntil(to, from net.Conn, left *atomic.Int64) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if rest := left.Add(-int64(n)) + int64(n); rest < int64(n) {
			_, _ = to.Write(b[:max(rest, 0)])
			return
		}
		if _, failed := to.Write(b[:n]); err != nil || failed != nil {
			return
		}
	}
}

// cut cuts all connections that there are.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// cutAfter has each later connection cut after some bytes in any direction.
func (p *proxy) cutAfter(after func() int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after = after
}
