package link_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy carries connections to an address, and cuts them.
type proxy struct {
	addr  string
	to    string
	l     net.Listener
	tasks sync.WaitGroup

	cuts    atomic.Int64
	refuses atomic.Bool

	mu    sync.Mutex
	conns map[net.Conn]bool
	after func() int // after how many bytes in any direction the next connection is cut; 0 for never
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String(), to: to, l: l, conns: map[net.Conn]bool{}, after: func() int { return 0 }}
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
	p.mu.Lock()
	p.conns[a], p.conns[b] = true, true
	after := p.after()
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.conns, a)
		delete(p.conns, b)
		p.mu.Unlock()
	}()
	var left atomic.Int64
	left.Store(int64(after))
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		p.tasks.Go(func() {
			copyUntil(way[0], way[1], &left, after > 0)
			done <- struct{}{}
		})
	}
	<-done
	if after > 0 {
		p.cuts.Add(1)
	}
}

// copyUntil copies bytes until left have been copied, if limited.
func copyUntil(to, from net.Conn, left *atomic.Int64, limited bool) {
	if !limited {
		_, _ = io.Copy(to, from)
		return
	}
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

// cutAfter makes each later connection end after some bytes.
func (p *proxy) cutAfter(after func() int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after = after
}
