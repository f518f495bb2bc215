package link_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"sandbox/core/engine/link"
	"sandbox/core/engine/wire"
)

// raw returns the bytes of a frame.
func raw(kind, stream byte, offset uint64, body string) []byte {
	b := []byte{kind, stream, 0, 0}
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	return append(binary.BigEndian.AppendUint64(b, offset), body...)
}

// started is a record that begins stdout and stderr.
func started() string {
	const body = `{"id":"exec_0"}`
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	b = append(b, byte(wire.TypeStarted), 2)
	for stream := range byte(2) {
		b = append(append(b, 1, stream+1), make([]byte, 16)...)
	}
	return string(b) + body
}

// bad are the bytes of frames that neither end sends, after a good beginning.
var bad = map[string][]byte{
	"no kind":                  raw(0, 0, 0, ""),
	"an unknown kind":          raw(99, 0, 0, ""),
	"an unknown stream":        raw(5, 7, 0, "x"),
	"no such stream":           raw(5, 200, 0, "x"),
	"an offset behind":         raw(5, 0, 1<<40, "x"),
	"a negative offset":        raw(5, 0, 1<<63, "x"),
	"data without bytes":       raw(5, 0, 0, ""),
	"an ack of nothing sent":   raw(6, 0, 1<<30, ""),
	"an end at another offset": raw(7, 0, 5, ""),
	"an ack with bytes":        raw(6, 0, 0, "x"),
	"an open within":           raw(1, 0, 0, "0123456789abcdef\x05{}"),
	"a long frame":             binary.BigEndian.AppendUint64([]byte{5, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, 0),
	"reserved bytes":           append([]byte{6, 0, 1, 0}, make([]byte, 12)...),
}

// TestHostileBox checks that the host end ends a session whose box end breaks the rules.
func TestHostileBox(t *testing.T) {
	t.Parallel()
	all := map[string][]byte{
		"a long record":       raw(5, 0, 0, "\xff\xff\xff\xff\x01\x00"),
		"many notes":          raw(5, 0, 0, "\x00\x00\x00\x00\x01\xff"),
		"a note of nothing":   raw(5, 0, 0, "\x00\x00\x00\x00\x01\x01\x09\x01"+string(make([]byte, 16))),
		"a note out of order": raw(5, 0, 0, "\x00\x00\x00\x00\x01\x01\x01\x05"+string(make([]byte, 16))),
		"a stop of output":    append(raw(5, 0, 0, started()), raw(8, 1, 0, "")...),
		"a detach":            raw(9, 0, 0, ""),
		"an end too early":    raw(10, 0, 0, ""),
		"a ping":              raw(11, 0, 0, ""),
	}
	for name, b := range bad {
		all[name] = b
	}
	for name, b := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := link.NewHost(hostile(t, append(raw(3, 0, 0, ""), b...)))
			conn := connect(t, h)
			_ = conn.Send(wire.TypeStart, nil)
			f, err := conn.Recv()
			if err == nil && f.Type == wire.TypeStarted {
				f.CloseFDs()
				_, err = conn.Recv()
			}
			if !errors.Is(err, io.EOF) {
				t.Errorf("the caller sees %v", err)
			}
			_ = conn.Close()
			_ = h.Close()
		})
	}
}

// hostile returns a dial to a box end that answers everything with the same bytes.
func hostile(t testing.TB, answer []byte) func(context.Context) (net.Conn, error) {
	var peers sync.WaitGroup
	t.Cleanup(peers.Wait)
	return func(context.Context) (net.Conn, error) {
		near, far := net.Pipe()
		peers.Go(func() {
			defer far.Close()
			go func() { _, _ = far.Write(answer) }()
			_, _ = io.Copy(io.Discard, far)
		})
		return near, nil
	}
}

// TestCloseWhileOpening checks that a host end can be closed while a box end does not say
// that a session is open.
func TestCloseWhileOpening(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer far.Close()
	h := link.NewHost(func(context.Context) (net.Conn, error) { return near, nil })
	conn := connect(t, h)
	defer conn.Close()
	_ = conn.Send(wire.TypeStart, nil)
	if _, err := io.ReadFull(far, make([]byte, 16+16+1)); err != nil { // the frame that opens it: its header, the id, the type
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- h.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second): // the answer is waited for 45 s
		t.Error("it waits for the answer")
		_ = far.Close()
		<-closed
	}
}

// TestHostileHost checks that the box end ends a line whose host end breaks the rules,
// and serves others.
func TestHostileHost(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, true)
	open := raw(1, 0, 0, "0123456789abcdef"+string([]byte{byte(wire.TypeStop)})+"{}")
	all := map[string][]byte{
		"no opening":      raw(5, 0, 0, "x"),
		"a short id":      raw(1, 0, 0, "0123"),
		"a resume of air": raw(2, 0, 0, "0123456789abcdef"),
		"half an offset":  raw(2, 0, 0, "0123456789abcdef1234"),
		"an end":          append(open, raw(10, 0, 0, "")...),
		"a stop":          append(open, raw(8, 0, 0, "")...),
	}
	for name, b := range bad {
		all[name] = append(append([]byte(nil), open...), b...)
	}
	t.Run("all", func(t *testing.T) {
		for name, b := range all {
			t.Run(name, func(t *testing.T) {
				c, err := net.Dial("tcp", w.proxy.to)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				_, _ = c.Write(b)
				_ = c.SetReadDeadline(time.Now().Add(time.Minute))
				if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("the line still stands")
				}
			})
		}
	})
	c := start(t, w.host(), write(10, 1))
	c.output()
	c.exit()
	c.leave(wire.TypeRelease)
}

// FuzzHost sends a host end any bytes.
func FuzzHost(f *testing.F) {
	f.Add(raw(5, 0, 0, started()))
	f.Add(append(raw(5, 0, 0, started()), raw(5, 1, 0, "output")...))
	for _, b := range bad {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h := link.NewHost(hostile(t, append(raw(3, 0, 0, ""), b...)))
		conn := connect(t, h)
		_ = conn.Send(wire.TypeStart, nil)
		closed := time.AfterFunc(20*time.Millisecond, conn.Cut)
		for {
			frame, err := conn.Recv()
			if err != nil {
				break
			}
			frame.CloseFDs()
		}
		closed.Stop()
		_ = conn.Close()
		_ = h.Close()
	})
}

// FuzzBox sends a box end any bytes.
func FuzzBox(f *testing.F) {
	w := makeWorld(f, true)
	open := raw(1, 0, 0, "0123456789abcdef"+string([]byte{byte(wire.TypeStart)})+`{"cmd":["true"]}`)
	f.Add(open)
	f.Add(append(open, raw(7, 0, 0, "")...))
	for _, b := range bad {
		f.Add(append(append([]byte(nil), open...), b...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := net.Dial("tcp", w.proxy.to)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(b)
		_ = c.(*net.TCPConn).CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		_ = c.Close()
	})
}
