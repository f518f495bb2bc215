package attack_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
	"sandbox/core/options"
	"sandbox/test/boxes"
)

// FuzzRequest is the init protocol as init reads it, in a real box: commands
// that the bytes happen to start are the box's.
func FuzzRequest(f *testing.F) {
	b := boxes.New(f, func(o *options.Box) { o.MemoryMiB = 128 })
	frame := func(t wire.Type, fds byte, body string) []byte {
		return append(header(uint32(len(body)), t, fds), body...)
	}
	f.Add(frame(wire.TypeStart, 0, `{"cmd":["true"]}`))
	f.Add(frame(wire.TypeStart, 0, `{"cmd":[]}`))
	f.Add(frame(wire.TypeStart, 0, `{"cmd":[""],"env":{"":"="},"working_dir":"x","user":"-1:-1"}`))
	f.Add(frame(wire.TypeStart, 0, `{"cmd":["cat"],"tty":true,"cols":-1,"rows":99999999}`))
	f.Add(append(frame(wire.TypeStart, 0, `{"cmd":["cat"],"stdin":true,"timeout_ms":-1}`), frame(wire.TypeSignal, 0, `{"signal":-9}`)...))
	f.Add(append(frame(wire.TypeStart, 0, `{"cmd":["sleep","9"]}`), frame(wire.TypeCancel, 0, `{"grace_ms":-9}`)...))
	f.Add(frame(wire.TypeAttach, 0, `{"id":"exec_a"}`))
	f.Add(frame(wire.TypePrepare, 0, `{}`))
	f.Add(frame(wire.TypeStats, 4, ``))
	f.Add(frame(255, 255, "\x00"))
	f.Add([]byte("\xff\xff\xff\xff\x00\x00"))
	f.Fuzz(func(t *testing.T, request []byte) {
		if len(request) > 4 && wire.Type(request[4]) == wire.TypeStop {
			return // would be obeyed
		}
		send(t, b, request)
		if _, err := b.Engine.Usage(context.Background(), b.ID); err != nil {
			t.Errorf("init answers no more: %v", err)
		}
	})
}

// send sends the bytes to a box's init and takes its answers to their end.
func send(t *testing.T, b *boxes.Box, request []byte) {
	t.Helper()
	conn := b.DialInit(t)
	defer conn.Close()
	if _, err := unix.Write(conn.FD(), request); err != nil && !errors.Is(err, unix.EPIPE) {
		t.Fatal(err)
	}
	if err := unix.Shutdown(conn.FD(), unix.SHUT_WR); err != nil && !errors.Is(err, unix.ENOTCONN) {
		t.Fatal(err)
	}
	for {
		f, err := conn.Recv()
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
				t.Errorf("init's answer: %v", err)
			}
			return
		}
		f.CloseFDs()
	}
}
