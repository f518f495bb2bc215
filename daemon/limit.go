package daemon

import (
	"net"
	"sync"
)

// limited is a listener that has a bounded number of connections at once. Those of
// netutil hide that they are TCP, and net/http then copies what it could splice.
type limited struct {
	*net.TCPListener
	places chan struct{}
	closed chan struct{}
	close  func() error
}

func limit(l *net.TCPListener, conns int) *limited {
	closed := make(chan struct{})
	return &limited{l, make(chan struct{}, conns), closed, sync.OnceValue(func() error {
		close(closed)
		return l.Close()
	})}
}

// Accept waits for a place, and then for a connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.AcceptTCP()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &placed{c, sync.OnceFunc(func() { <-l.places })}, nil
}

// Close ends Accept. Connections stay open.
func (l *limited) Close() error { return l.close() }

// placed is a connection that frees its place when it is closed.
type placed struct {
	*net.TCPConn
	leave func()
}

// Close closes the connection.
func (c *placed) Close() error {
	defer c.leave()
	return c.TCPConn.Close()
}
