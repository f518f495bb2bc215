package engine

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
)

// A request that ends after its client was closed tells the shim that its connection goes,
// as the kept ones did: the home may be removed then.
func TestLateRequestSettles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		shim *shim
		want []wire.Type // what the shim hears before the connection is closed
	}{
		"with a pool":    {&shim{closed: true, settles: true}, []wire.Type{wire.TypeSettle}},
		"without a pool": {&shim{closed: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			client, server := wire.NewConn(p[0], "client"), wire.NewConn(p[1], "shim")
			defer server.Close()
			kept := make(chan struct{})
			go func() {
				defer close(kept)
				tt.shim.keep(client)
			}()
			for _, want := range tt.want {
				f, err := server.Recv()
				if err != nil || f.Type != want {
					t.Fatalf("the shim heard %d, %v; want %d", f.Type, err, want)
				}
				if err := server.Send(wire.TypeDone, nil); err != nil {
					t.Fatal(err)
				}
			}
			if f, err := server.Recv(); !errors.Is(err, io.EOF) {
				t.Errorf("the shim heard %d, %v; want the end", f.Type, err)
			}
			<-kept
			if len(tt.shim.idle) > 0 {
				t.Error("the connection was kept")
			}
		})
	}
}

// A kept connection to a shim that has died keeps nobody from telling the shim that came
// after it that its own connection goes.
func TestCloseSettlesBehindDead(t *testing.T) {
	t.Parallel()
	s := &shim{settles: true}
	var servers []*wire.Conn
	for range 2 {
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		s.idle = append(s.idle, wire.NewConn(p[0], "client"))
		servers = append(servers, wire.NewConn(p[1], "shim"))
	}
	if err := servers[0].Close(); err != nil {
		t.Fatal(err)
	}
	server := servers[1]
	defer server.Close()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.close()
	}()
	if f, err := server.Recv(); err != nil || f.Type != wire.TypeSettle {
		t.Errorf("the shim heard %d, %v; want %d", f.Type, err, wire.TypeSettle)
	}
	if err := server.Send(wire.TypeDone, nil); err != nil {
		t.Error(err)
	}
	<-closed
}

// A page of the program in memory that is in use, here by a pipe, keeps it from being sealed
// only for as long as it is.
func TestSealWaits(t *testing.T) {
	t.Parallel()
	fd, err := memfd("program")
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "program")
	defer f.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	page := make([]byte, os.Getpagesize())
	if _, err := f.Write(page); err != nil {
		t.Fatal(err)
	}
	start := int64(0)
	if n, err := unix.Splice(fd, &start, int(w.Fd()), nil, len(page), 0); err != nil || n != int64(len(page)) {
		t.Fatal(n, err)
	}
	time.AfterFunc(time.Second, func() { _, _ = io.CopyN(io.Discard, r, int64(len(page))) }) // longer than the kernel waits
	if err := seal(f); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(page, 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("after the seal a write is answered with %v, want EPERM", err)
	}
}
