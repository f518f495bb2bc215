package backend

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// Tunnel passes on what comes from each of two connections to the other, and its end.
// Each direction ends for itself; where one breaks, or when ctx ends, both connections
// are closed, and so they are when it returns. Both have CloseWrite, as those of
// [Boxes.Connect] have.
func Tunnel(ctx context.Context, a, b net.Conn) {
	stop := context.AfterFunc(ctx, func() { _, _ = a.Close(), b.Close() })
	defer stop()
	var back sync.WaitGroup
	back.Go(func() { pass(a, b) })
	pass(b, a)
	back.Wait()
	_, _ = a.Close(), b.Close()
}

func pass(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if err == nil {
		err = to.(interface{ CloseWrite() error }).CloseWrite() //nolint:forcetypeassert // see Tunnel
	}
	if err != nil {
		_, _ = to.Close(), from.Close()
	}
}

// Socket is a connection to a port of a box for those who know nothing but
// descriptors: a socket of the caller's, and one of ours that leads to the program. The
// connection itself is never handed out, because it keeps the network of its box in the
// kernel. Socket ends when both directions have, or with its Close.
type Socket struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

// NewSocket returns a descriptor of a connected stream socket, which the caller owns,
// and what passes on between it and conn. conn is closed with that, and if NewSocket
// fails. Errors: ResourceExhausted.
func NewSocket(conn net.Conn) (fd int, s *Socket, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, nil, errors.Join(fault.Wrap(fault.ResourceExhausted, err, "make a socket"), conn.Close())
	}
	file := os.NewFile(uintptr(pair[1]), "port")
	ours, err := net.FileConn(file)
	_ = file.Close()
	if err != nil {
		_ = unix.Close(pair[0])
		return -1, nil, errors.Join(fault.Wrap(fault.ResourceExhausted, err, "use a socket"), conn.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s = &Socket{cancel, make(chan struct{})}
	go func() {
		defer close(s.ended)
		defer cancel()
		Tunnel(ctx, ours, conn)
	}()
	return pair[0], s, nil
}

// Ended is closed when both directions have ended.
func (s *Socket) Ended() <-chan struct{} { return s.ended }

// Close ends the connection, and waits for that. The caller's descriptor stays its own.
func (s *Socket) Close() error {
	s.cancel()
	<-s.ended
	return nil
}
