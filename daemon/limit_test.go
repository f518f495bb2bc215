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
	for range 2 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	first := <-accepted
	select {
	case <-accepted:
		t.Fatal("a connection over the limit was accepted")
	default: // the other Accept waits for a place, whichever way it is scheduled
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
