package daemon

import (
	"errors"
	"net"
	"testing"
)

// TestLimit has a second connection wait until the first has ended, and an Accept
// that waits for a place end with the listener.
func TestLimit(t *testing.T) {
	t.Parallel()
	tcp, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	l := limit(tcp, 1)
	defer l.Close()
	accepted, ended := make(chan net.Conn), make(chan error)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	clients := make([]net.Conn, 2)
	for i := range clients {
		if clients[i], err = net.Dial("tcp", l.Addr().String()); err != nil {
			t.Fatal(err)
		}
		defer clients[i].Close()
	}
	first := <-accepted
	for range 1000 { // meanwhile an Accept that did not wait would return
		select {
		case <-accepted:
			t.Fatal("a connection over the limit was accepted")
		default:
			roundTrip(t, clients[0], first)
		}
	}
	_ = first.Close()
	_ = first.Close() // frees one place only
	second := <-accepted
	defer second.Close()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept ended with %v", err)
	}
}

// roundTrip passes a byte from one end of a connection to the other.
func roundTrip(t *testing.T, from, to net.Conn) {
	t.Helper()
	_, wrote := from.Write([]byte{1})
	_, read := to.Read(make([]byte, 1))
	if err := errors.Join(wrote, read); err != nil {
		t.Fatal(err)
	}
}
