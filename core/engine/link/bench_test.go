package link_test

import (
	"crypto/tls"
	"io"
	"net"
	"strconv"
	"testing"

	"sandbox/core/engine/wire"
)

// BenchmarkExec measures a whole exec without output over a kept line, and beside it the
// same straight to init.
func BenchmarkExec(b *testing.B) {
	w := newWorld(b)
	h := w.directHost()
	one := func(b *testing.B, conn *wire.Conn) {
		c := beginOn(b, conn, wire.TypeStart, wire.Start{Cmd: []string{"true"}})
		c.output()
		c.exit()
		c.leave(wire.TypeRelease)
	}
	b.Run("link", func(b *testing.B) {
		for b.Loop() {
			one(b, connect(b, h))
		}
	})
	b.Run("straight", func(b *testing.B) {
		for b.Loop() {
			conn, err := w.init.connect()
			if err != nil {
				b.Fatal(err)
			}
			one(b, conn)
		}
	})
}

// BenchmarkOutput measures 256 MiB of output, and beside it the same straight through
// the pipe and through a bare connection.
func BenchmarkOutput(b *testing.B) {
	const size = 256 << 20
	w := newWorld(b)
	h := w.directHost()
	buf := make([]byte, 256<<10)
	one := func(b *testing.B, conn *wire.Conn) {
		c := beginOn(b, conn, wire.TypeStart, wire.Start{Cmd: []string{"fill", strconv.Itoa(size)}})
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c.out}, buf)
		if err != nil || n != size {
			b.Fatal(n, err)
		}
		c.exit()
		c.leave(wire.TypeRelease)
	}
	b.Run("link", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			one(b, connect(b, h))
		}
	})
	b.Run("straight", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			conn, err := w.init.connect()
			if err != nil {
				b.Fatal(err)
			}
			one(b, conn)
		}
	})
	b.Run("bare TLS", func(b *testing.B) {
		server, client := both()
		l, err := tls.Listen("tcp", "127.0.0.1:0", server)
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		b.SetBytes(size)
		for b.Loop() {
			done := make(chan struct{})
			go func() {
				defer close(done)
				send(l, size)
			}()
			c, err := tls.Dial("tcp", l.Addr().String(), client)
			if err != nil {
				b.Fatal(err)
			}
			n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, buf)
			if err != nil || n != size {
				b.Fatal(n, err)
			}
			_ = c.Close()
			<-done
		}
	})
}

func send(l net.Listener, size int) {
	c, err := l.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	b := make([]byte, 64<<10)
	for ; size > 0; size -= len(b) {
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}
