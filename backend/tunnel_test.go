package backend

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// program is the connection to a program that takes so many writes and has no input
// then. It answers once it may.
type program struct {
	net.Conn // nil
	takes    int
	answer   io.Reader     // behind it comes io.EOF
	silent   bool          // behind it comes nothing
	may      chan struct{} // closed when it answers
	once     sync.Once
	closed   chan struct{}
}

func newProgram(takes int, answer string) *program {
	return &program{takes: takes, answer: strings.NewReader(answer), may: make(chan struct{}), closed: make(chan struct{})}
}

func (p *program) Read(buf []byte) (int, error) {
	select {
	case <-p.closed:
		return 0, net.ErrClosed
	case <-p.may:
	}
	n, err := p.answer.Read(buf)
	if p.silent && err != nil {
		<-p.closed
	}
	return n, err
}

func (p *program) Write(buf []byte) (int, error) {
	if p.takes--; p.takes < 0 {
		return 0, errors.New("the program has gone")
	}
	return len(buf), nil
}

func (p *program) CloseWrite() error {
	if p.takes < 0 {
		return errors.New("the program has gone")
	}
	return nil
}

func (p *program) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// connected returns the client's end of a tunnel to a program, which is ended with the
// test.
func connected(t *testing.T, p *program) net.Conn {
	t.Helper()
	fd, s, err := NewSocket(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	f := os.NewFile(uintptr(fd), "client")
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute)) // a tunnel that hangs fails the test
	return conn
}

// A program that refuses what a client sends is heard, though the client goes on sending.
func TestTunnelPassesAnAnswerOnBehindARefusal(t *testing.T) {
	t.Parallel()
	p := newProgram(1, "413 too large")
	client := connected(t, p)
	if _, err := client.Write(make([]byte, 8<<20)); err != nil { // far more than sockets hold
		t.Errorf("the client sends on: %v", err)
	}
	close(p.may)
	// What of its bytes lies unread at the end resets the connection, as that of a program does.
	if answer, err := io.ReadAll(client); err != nil && !errors.Is(err, unix.ECONNRESET) || string(answer) != "413 too large" {
		t.Errorf("the client had %q, %v", answer, err)
	}
	<-p.closed
}

// A program that sends nothing more and then takes nothing more has ended: so has the
// connection, for a client that goes on sending, too.
func TestTunnelEndsWithTheProgram(t *testing.T) {
	t.Parallel()
	p := newProgram(1, "bye")
	client := connected(t, p)
	close(p.may)
	if answer, err := io.ReadAll(client); err != nil || string(answer) != "bye" {
		t.Errorf("the client had %q, %v", answer, err)
	}
	for {
		if _, err := client.Write(make([]byte, 1<<20)); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the tunnel stays open")
			}
			break
		}
	}
	<-p.closed
}

// A client that breaks off ends the connection of a program that says nothing.
func TestTunnelEndsWithTheClient(t *testing.T) {
	t.Parallel()
	p := newProgram(1, strings.Repeat("x", 100))
	p.silent = true
	client := connected(t, p)
	close(p.may)
	if _, err := client.Read(make([]byte, 1)); err != nil { // it leaves the rest unread, so its end is a reset
		t.Error(err)
	}
	_ = client.Close()
	select {
	case <-p.closed:
	case <-time.After(time.Minute):
		t.Error("the program's connection stays open")
	}
}
