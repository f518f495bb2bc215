package backend

import (
	"context"
	"errors"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// Tunnel passes on what comes from a client and from a program to the other, and its
// end. Each direction ends for itself: what a program has answered reaches the client
// also where it takes no more, as one does that refuses a request before all of it came.
// Where the client breaks off, or when ctx ends, both connections are closed, and so
// they are when Tunnel returns. Both have CloseWrite, as those of [Boxes.Connect] have.
func Tunnel(ctx context.Context, client, program net.Conn) {
	shut := func() { _, _ = client.Close(), program.Close() }
	defer shut()
	stop := context.AfterFunc(ctx, shut)
	defer stop()
	answered, done := context.WithCancel(context.Background())
	go func() {
		defer done()
		if pass(client, program) != nil {
			shut()
		}
	}()
	if pass(program, client) != nil {
		refused(client, program, answered, shut)
	}
	<-answered.Done()
}

// refused drops what a client still sends to a program that takes no more, until answered
// ends; then shut ends the connections. If the program could still be told that nothing
// more comes, it was the client that broke off, and shut ends them at once.
func refused(client, program net.Conn, answered context.Context, shut func()) {
	if endInput(program) == nil {
		shut()
		return
	}
	context.AfterFunc(answered, shut)
	if _, err := io.Copy(io.Discard, client); err != nil {
		shut()
	}
}

func pass(to, from net.Conn) error {
	if _, err := io.Copy(to, from); err != nil {
		return err
	}
	return endInput(to)
}

func endInput(c net.Conn) error {
	return c.(interface{ CloseWrite() error }).CloseWrite() //nolint:forcetypeassert // see Tunnel
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
